"""LinkedIn, for members. What a member has posted cannot be read; but a repeat is refused, and the first post named."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from channels.rules import ChannelRules
from channels.validation import MediaKind
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, Proof
from publisher_service.adapters.providers.credentials import OAuth, TokenSource
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.linkedin_api import (
    LinkedInApi,
    comment_body,
    commented,
    may_be_made_since,
    path_of,
    post_body,
    published,
    refused_comment,
    repeated,
    url_of,
)
from publisher_service.adapters.providers.linkedin_errors import duplicate_of, linkedin_error
from publisher_service.adapters.providers.linkedin_media import NOT_PREPARED, Connect, LinkedInMedia, media_content
from publisher_service.adapters.providers.linkedin_rules import LINKEDIN_RULES
from publisher_service.adapters.providers.linkedin_tokens import MEMBER_SCOPES, LinkedInOAuth, LinkedInTokens, member_of
from publisher_service.adapters.providers.media_source import MediaSource
from publisher_service.adapters.providers.oauth_application import Application
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Accepted,
    Finding,
    NoProof,
    Outcome,
    Rejected,
    Repeatable,
)
from publisher_service.domain.preparation import Preparing, Unfit
from publisher_service.domain.provider_error import ErrorClass, ProviderError, outcome_of
from servicekit.clock import Clock

_MEMBER: Final = re.compile(r"(?:urn:li:person:)?([A-Za-z0-9_-]{1,64})")
# LinkedIn refuses the same text of the same author for much longer than this; for how long it does not say.
_WINDOW: Final = timedelta(minutes=10)
# A look asks nobody. It only gives LinkedIn the time to end a request, and leaves some for repeats.
_SETTLE: Final = timedelta(seconds=90)
_READABLE: Final = frozenset({MediaKind.VIDEO})
_NO_MEMBER: Final = "the account is no member of LinkedIn"


class LinkedInAdapter:
    """Posts of a member: the scopes are `openid profile w_member_social`."""

    name: Final = "linkedin"
    rules: Final[Mapping[str, ChannelRules]] = {"linkedin_profile": LINKEDIN_RULES}
    proof: Final = Proof.KEYED

    def __init__(
        self,
        origin: HttpOrigin,
        limits: Limits,
        *,
        version: str,
        media: MediaSource,
        clock: Clock,
        connect: Connect | None = None,
        app: Application | None = None,
        sign_in: HttpOrigin | None = None,
    ) -> None:
        """Takes our application and the server of its tokens, www.linkedin.com; without both nobody can visit."""
        self.limits: Final = replace(
            limits,
            unknown_settle=min(limits.unknown_settle, _SETTLE),
            unknown_deadline=min(limits.unknown_deadline, _WINDOW),
            repeat_window=_WINDOW,
            prepare_timeout=3 * limits.prepare_timeout,
            senders=min(limits.senders, 16),
        )
        self._clock = clock
        self._api = LinkedInApi(origin, limits, version=version, clock=clock)
        self._media = LinkedInMedia(self._api, origin, self.limits, media=media, connect=connect)
        self.token_source: TokenSource | None = None
        self.oauth: OAuth | None = None
        if app is not None and sign_in is not None:
            self.token_source = LinkedInTokens(sign_in, limits, app)
            self.oauth = LinkedInOAuth(self._api, sign_in, limits, app=app, scopes=MEMBER_SCOPES, accounts=member_of)

    async def close(self) -> None:
        """Closes the connections for uploads."""
        await self._media.close()

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        """Asks whose token it is, for which the scopes `openid profile` are needed."""
        if not (member := _member(external_account_id)):
            raise CredentialsRefused(_NO_MEMBER)
        seen = await self._api.readable(
            "/v2/userinfo",
            credentials.access_token,
            refused="LinkedIn does not say whose token it is (openid, profile)",
        )
        if seen.get("sub") != member:
            raise CredentialsRefused("the token is of another member of LinkedIn")

    async def prepare(self, post: Post) -> Preparing:
        if not (author := _author(post)):
            return Unfit(reason="ACCOUNT_UNREADABLE", message=_NO_MEMBER)
        return await self._media.begin(post, author)

    async def check(self, post: Post) -> Preparing:
        if not (author := _author(post)):
            return Unfit(reason="ACCOUNT_UNREADABLE", message=_NO_MEMBER)
        return await self._media.go_on(post, author, readable=_READABLE)

    async def send(self, post: Post) -> Outcome:
        if not (author := _author(post)):
            return Rejected(reason="ACCOUNT_UNREADABLE", message=_NO_MEMBER)
        if post.follows:
            return await self._comment(post, author)
        content = media_content(post)
        if post.media and content is None:
            return NOT_PREPARED
        answer = await self._api.create("/rest/posts", post.access_token, post_body(post, author, content))
        if not isinstance(answer, Answer):
            return answer
        if answer.status == 201:
            return published(answer)
        error = linkedin_error(answer)
        return (
            _recognized(post, answer, error) if error.kind is ErrorClass.DUPLICATE_PROOF else self._api.outcome(answer)
        )

    async def look(self, post: Post) -> Finding:
        """Asks nobody: what proves a post of a member is the refusal of its repeat."""
        if post.follows:
            return NoProof(message="LinkedIn shows no comments of members, and takes the same comment twice")
        if not post.text or post.since is None:
            return NoProof(message="LinkedIn recognizes a repeat by its text, and there is none")
        if self._clock.now() >= post.since + _WINDOW:
            return NoProof(message="it is too late for LinkedIn to recognize a repeat for sure")
        return Repeatable(message="LinkedIn refuses a repeat, and names the post that is out")

    async def _comment(self, post: Post, author: str) -> Outcome:
        # The versioned resource is for partners alone (403 `partnerApiSocialActions.CREATE`); this one is for all.
        path = f"/v2/socialActions/{path_of(post.follows)}/comments"
        answer = await self._api.create(path, post.access_token, comment_body(post, author), versioned=False)
        if not isinstance(answer, Answer):
            return answer
        if answer.status == 201:
            return commented(answer, post.follows)
        return refused_comment(self._api, answer)


def _recognized(post: Post, answer: Answer, error: ProviderError) -> Outcome:
    """Returns what the refusal of a duplicate means: in a run in doubt it names the post of an earlier request."""
    first = duplicate_of(answer)
    if post.since is None:
        return repeated(answer, error)
    if not first:
        return outcome_of(error)
    if not may_be_made_since(first, post.since):
        # This text is older than the run, so the first request was refused as well.
        return repeated(answer, error)
    return Accepted(external_id=first, external_url=url_of(first), is_by_text=True)


def _member(external_account_id: str) -> str:
    match = _MEMBER.fullmatch(external_account_id)
    return match[1] if match else ""


def _author(post: Post) -> str:
    member = _member(post.external_account_id)
    return f"urn:li:person:{member}" if member else ""
