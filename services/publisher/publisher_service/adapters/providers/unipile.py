"""Unipile: e-mails of connected mailboxes, and messages, InMails and invitations of LinkedIn accounts.

One key of the deployment calls the API for all accounts; an account is named by its id at Unipile, and has no token of
its own. Each post goes to one person, its destination.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

from channels.texts import with_link
from publisher_service.adapters.media.refusals import MediaRefused, MediaUnavailable
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, Proof, ProviderDown
from publisher_service.adapters.providers.answers import is_post_name, list_in, object_of, text_in
from publisher_service.adapters.providers.attachments import checked, opened
from publisher_service.adapters.providers.calls import Calls, Unanswered
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.mail_addresses import is_address, is_one_line
from publisher_service.adapters.providers.mail_rules import MOST_ATTACHED as MOST_MAILED
from publisher_service.adapters.providers.media_source import MediaSource
from publisher_service.adapters.providers.multipart import Form, FormFile
from publisher_service.adapters.providers.texts import without_secret
from publisher_service.adapters.providers.unipile_errors import classify_unipile, is_about_the_account
from publisher_service.adapters.providers.unipile_looks import UnipileLooks
from publisher_service.adapters.providers.unipile_rules import (
    CONNECTION,
    EMAIL,
    INMAIL,
    MOST_ATTACHED,
    UNIPILE_RULES,
)
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Accepted, Ambiguous, Finding, NoProof, NotSent, Outcome, Rejected
from publisher_service.domain.preparation import Delayed, Preparing, Ready, Unfit
from publisher_service.domain.provider_error import ErrorClass, ProviderError, outcome_of, preparing_of
from servicekit.run.settings import Secret

_JSON: Final = {"Content-Type": "application/json"}
# How members are named by the three products of LinkedIn, as an account sees them; anything else is a public name.
_PROVIDER_ID: Final = re.compile(r"(ACo|ACw|AE)[A-Za-z0-9_-]{8,}")
_AS_TEXT: Final = json.dumps([{"name": "Content-Type", "value": "text/plain; charset=utf-8"}])
# States of an account in which its owner has to do something.
_UNUSABLE: Final = frozenset({"CREDENTIALS", "PERMISSIONS", "STOPPED", "DELETED"})
_NAMES: Final = {EMAIL: ("provider_id", "tracking_id"), CONNECTION: ("invitation_id",)}


class UnipileAdapter:
    name: Final = "unipile"
    rules: Final = UNIPILE_RULES
    # Only what is listed is proven: without that, a person is asked.
    proof: Final = Proof.LOOKUP
    unknown_account: Final = "Unipile has no such account for this organization"

    def __init__(self, origin: HttpOrigin, limits: Limits, *, api_key: Secret, media: MediaSource) -> None:
        # It waits for LinkedIn, or for a mail server.
        self.limits: Final = replace(limits, request_timeout=3 * limits.request_timeout)
        self._origin = origin
        self._media = media
        self._api_key = api_key
        self._headers = {"X-API-KEY": api_key.reveal(), "Accept": "application/json"}
        self._calls = Calls("Unipile", origin, timeout=self.limits.request_timeout)
        self._looks = UnipileLooks(self._calls, self._headers, classify=self._error)

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        """Asks whether the account is connected to Unipile. The token is not looked at: accounts have none there.

        Raises CredentialsRefused or ProviderDown.
        """
        answer = await self._calls.read(f"/api/v1/accounts/{quote(external_account_id, safe='')}", self._headers)
        if isinstance(answer, Unanswered):
            raise ProviderDown(answer.message)
        if answer.status != 200:
            error = self._error(answer)
            if error.kind in {ErrorClass.TARGET_GONE, ErrorClass.PERMANENT}:
                raise CredentialsRefused(self.unknown_account)
            is_refusal = error.kind in {ErrorClass.AUTH_REVOKED, ErrorClass.AUTH_USER_ACTION}
            raise (CredentialsRefused if is_refusal else ProviderDown)(error.message)
        body = object_of(answer.body)
        if body.get("object") != "Account" or body.get("id") != external_account_id:
            raise ProviderDown("the answer of Unipile cannot be read")
        states = {text_in(each, "status") for each in list_in(body, "sources") or () if isinstance(each, dict)}
        if unusable := states & _UNUSABLE:
            raise CredentialsRefused(f"the account has to be connected to Unipile again: {min(unusable)}")

    async def prepare(self, post: Post) -> Preparing:
        """Finds out the id of a member that is named publicly, and whether attachments can be sent."""
        if post.media:
            bound = MOST_MAILED if post.channel == EMAIL else MOST_ATTACHED
            seen = await checked(self._media, post, most_bytes=bound, handle="text")
            if not isinstance(seen, Ready):
                return seen
        if post.channel == EMAIL or _PROVIDER_ID.fullmatch(post.destination):
            return Ready(handle="text")
        return await self._resolved(post)

    check = prepare

    async def send(self, post: Post) -> Outcome:
        """Makes one request. The texts that end in a header or name a person are checked before."""
        if (refused := _malformed(post)) is not None:
            return refused
        if post.channel == CONNECTION:
            return self._outcome(post, await self._invite(post))
        bound = MOST_MAILED if post.channel == EMAIL else MOST_ATTACHED
        ends = asyncio.get_running_loop().time() + self.limits.request_timeout.total_seconds()
        async with AsyncExitStack() as stack:
            try:
                # The rest of the time is for the request.
                async with asyncio.timeout(self.limits.request_timeout.total_seconds() / 2):
                    files = await stack.enter_async_context(opened(self._media, post, most_bytes=bound))
            except MediaRefused as error:
                return Rejected(reason=error.reason, message=error.message)
            except (MediaUnavailable, TimeoutError) as error:
                return NotSent(reason="MEDIA_UNAVAILABLE", message=str(error) or "the media did not come in time")
            path = "/api/v1/emails" if post.channel == EMAIL else "/api/v1/chats"
            attached = [FormFile(name="attachments", filename=each.name, file=each.file) for each in files]
            return self._outcome(post, await self._upload(path, post, Form(_fields(post), attached), ends))

    async def look(self, post: Post) -> Finding:
        if post.channel == EMAIL:
            return await self._looks.email(post)
        member = _member(post)
        if not _PROVIDER_ID.fullmatch(member):
            return NoProof(message="nobody knows under which id the member was written to")
        if post.channel == CONNECTION:
            return await self._looks.invitation(post, member)
        return await self._looks.message(replace(post, text=with_link(post.text, post.link)), member)

    async def _resolved(self, post: Post) -> Preparing:
        """Returns the member's id as this account sees it: Unipile takes no other in a message."""
        query = urlencode({"account_id": post.external_account_id})
        answer = await self._calls.read(f"/api/v1/users/{quote(post.destination, safe='')}?{query}", self._headers)
        if isinstance(answer, Unanswered):
            return Delayed(message=answer.message)
        if answer.status != 200:
            return preparing_of(self._error(answer))
        member = object_of(answer.body).get("provider_id")
        if not (isinstance(member, str) and _PROVIDER_ID.fullmatch(member)):
            return Unfit(
                reason="MEMBER_UNKNOWN", message="Unipile shows no id of the member by which it can be reached"
            )
        return Ready(handle=json.dumps({"member": member}))

    async def _invite(self, post: Post) -> Answer | NotSent | Ambiguous:
        content = {"account_id": post.external_account_id, "provider_id": _member(post)}
        if post.text:
            content["message"] = post.text
        return await self._calls.post("/api/v1/users/invite", self._headers, json.dumps(content).encode())

    async def _upload(self, path: str, post: Post, form: Form, ends: float) -> Answer | NotSent | Ambiguous:
        """Posts a form. Unipile remembers the key of an e-mail until it restarts: a help, but no proof."""
        key = {"Idempotency-Key": post.idempotency_key} if post.channel == EMAIL else {}
        headers = {**self._headers, **key, "Content-Type": form.content_type}
        timeout = timedelta(seconds=ends - asyncio.get_running_loop().time())
        return await self._calls.post_pieces(path, headers, form.pieces(), size=form.size, timeout=timeout)

    def _outcome(self, post: Post, answer: Answer | NotSent | Ambiguous) -> Outcome:
        if not isinstance(answer, Answer):
            return answer
        if answer.status in {200, 201}:
            body = object_of(answer.body)
            names = (body.get(name) for name in _NAMES.get(post.channel, ("message_id",)))
            external_id = next((name for name in names if is_post_name(name)), None)
            if external_id is None:
                return Ambiguous(reason="UNREADABLE_ANSWER", message="Unipile accepted, but names no message")
            return Accepted(external_id=external_id, external_url="")
        error = self._error(answer)
        if error.kind is ErrorClass.TARGET_GONE and is_about_the_account(answer, is_mail=post.channel == EMAIL):
            error = replace(error, kind=ErrorClass.AUTH_REVOKED)
        return outcome_of(error)

    def _error(self, answer: Answer) -> ProviderError:
        error = classify_unipile(answer)
        return replace(error, message=without_secret(error.message, self._api_key.reveal()))


def _malformed(post: Post) -> Rejected | None:
    if post.channel == EMAIL and not is_address(post.destination):
        return Rejected(reason="ADDRESS_MALFORMED", message="the destination is no e-mail address in ASCII")
    if post.channel != EMAIL and not _PROVIDER_ID.fullmatch(_member(post)):
        return Rejected(reason="MEMBER_UNKNOWN", message="nobody has found out the id of the member")
    if post.channel in {EMAIL, INMAIL} and not (post.title and is_one_line(post.title)):
        return Rejected(reason="TITLE_MALFORMED", message="the title must be one line, and is the subject")
    return None


def _fields(post: Post) -> Sequence[tuple[str, str]]:
    text = with_link(post.text, post.link)
    if post.channel == EMAIL:
        return (
            ("account_id", post.external_account_id),
            ("to", json.dumps([{"identifier": post.destination}])),
            ("subject", post.title),
            ("body", text),
            ("custom_headers", _AS_TEXT),
        )
    message = (("account_id", post.external_account_id), ("attendees_ids", _member(post)), ("text", text))
    if post.channel == INMAIL:
        return (*message, ("subject", post.title), ("linkedin[api]", "classic"), ("linkedin[inmail]", "true"))
    return message


def _member(post: Post) -> str:
    """Returns the id of the member: as it was found out, or the destination itself."""
    member: Any = object_of(post.handle.encode()).get("member")
    return member if isinstance(member, str) else post.destination
