"""The HTTP parts that all surfaces of the sandbox share: requests, and what their answers mean."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, ProviderDown
from publisher_service.adapters.providers.answers import is_post_name, object_of, time_of
from publisher_service.adapters.providers.http_origin import Answer, ConnectionLost, HttpOrigin, NotConnected
from publisher_service.adapters.providers.texts import storable
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    AuthRefused,
    Found,
    Level,
    NoProof,
    NotSent,
    Outcome,
    Quota,
    RateLimited,
    Rejected,
)

_RETRY_AFTER: Final = timedelta(seconds=5)
_SHORTEST_RETRY_AFTER: Final = timedelta(seconds=1)
_LONGEST_RETRY_AFTER: Final = timedelta(hours=24)
# The provider answers so to an account that has to wait; the body says for how long.
_FLOOD_WAIT: Final = 420
_QUOTAS: Final = {
    b"x-quota-application": Level.APPLICATION,
    b"x-quota-account": Level.ACCOUNT,
    b"x-quota-channel": Level.CHANNEL,
}
_LEVELS: Final = {level.lower(): level for level in Level}


class SandboxHttp:
    def __init__(self, origin: HttpOrigin, limits: Limits) -> None:
        self._origin = origin
        self._timeout = limits.request_timeout

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        """Checks credentials. Raises CredentialsRefused or ProviderDown."""
        try:
            answer = await self._origin.get(
                account_path(external_account_id), _bearer(credentials.access_token), timeout=self._timeout
            )
        except (NotConnected, ConnectionLost, TimeoutError) as error:
            raise ProviderDown(type(error).__name__) from None
        if answer.status in (401, 403, 404):
            raise CredentialsRefused(f"the sandbox answered {answer.status}")
        if answer.status != 200:
            raise ProviderDown(f"the sandbox answered {answer.status}")

    async def get(self, path: str, access_token: str) -> Answer | AuthRefused | NoProof:
        """Reads something; anything but an answer with the status 200 proves nothing."""
        try:
            answer = await self._origin.get(path, _bearer(access_token), timeout=self._timeout)
        except (NotConnected, ConnectionLost, TimeoutError) as error:
            return NoProof(message=f"the look-up failed: {type(error).__name__}")
        if answer.status == 401:
            return AuthRefused(message="the sandbox refused the credentials")
        if answer.status != 200:
            return NoProof(message=f"the look-up answered {answer.status}")
        return answer

    async def post(self, path: str, post: Post, key: Mapping[str, str], *, body: bool = True) -> Answer | Outcome:
        """Makes one request. `key` is a header that names the post."""
        content = {"channel": post.channel, "destination": post.destination, "text": post.text} if body else {}
        if body and post.follows:
            content["follows"] = post.follows
        headers = {**_bearer(post.access_token), **key, "Content-Type": "application/json"}
        try:
            return await self._origin.post(path, headers, json.dumps(content).encode(), timeout=self._timeout)
        except NotConnected as error:
            message = f"the sandbox cannot be reached: {error}"
            return NotSent(reason="CONNECTION_REFUSED", message=message, is_unreachable=True)
        except TimeoutError:
            return Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="the sandbox did not answer in time")
        except ConnectionLost as error:
            return Ambiguous(reason="CONNECTION_LOST", message=f"the connection broke: {error}")


def account_path(external_account_id: str) -> str:
    """Returns the path of an account. The id is one segment of it; `..` can never be connected."""
    return f"/v1/accounts/{quote(external_account_id, safe='')}"


def classify(answer: Answer) -> Outcome:
    """Returns what the answer to a post means."""
    status, body = answer.status, object_of(answer.body)
    if status in (200, 201):
        external_id, url = body.get("id"), body.get("url")
        if is_post_name(external_id) and isinstance(url, str):
            return Accepted(
                external_id=external_id,
                external_url=storable(url),
                publish_time=time_of(body.get("create_time")),
                quotas=_quotas(answer.headers),
            )
        return Ambiguous(reason="UNREADABLE_ANSWER", message="the sandbox accepted, but its answer cannot be read")
    message = message_of(body, status)
    if status == 401:
        return AuthRefused(message=message)
    if status in (429, _FLOOD_WAIT):
        return RateLimited(
            message=message,
            retry_after=_wait(answer),
            level=_level(body),
            quotas=_quotas(answer.headers),
        )
    reason = reason_of(body, status)
    # In progress, or already out under this key: the refusal of a repeat says nothing about the first request.
    repeat = status == 409 or reason == "IDEMPOTENCY_KEY_REUSED"
    if 400 <= status < 500 and status != 408 and not repeat:
        return Rejected(reason=reason, message=message, peer_blocked=reason == "PEER_BLOCKED")
    return Ambiguous(reason=reason, message=message)


def found(post: object) -> Found | None:
    """Returns the proof that a post is out, as the sandbox shows it; None if it cannot be read."""
    match post:
        case {"id": external_id, "url": str(url), **rest} if is_post_name(external_id):
            return Found(
                external_id=external_id, external_url=storable(url), publish_time=time_of(rest.get("create_time"))
            )
        case _:
            return None


def message_of(body: Mapping[str, Any], status: int) -> str:
    error = body.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return storable(str(message)[:500]) if message else f"the sandbox answered {status}"


def reason_of(body: Mapping[str, Any], status: int) -> str:
    error = body.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return storable(str(code).upper()[:64]) if code else f"HTTP_{status}"


def _wait(answer: Answer) -> timedelta:
    """Returns how long to wait: as the header says, or the body of a flood wait."""
    text = answer.headers.get(b"retry-after", b"")
    asked = timedelta(seconds=int(text)) if text.isdigit() and len(text) < 7 else _RETRY_AFTER
    if answer.status == _FLOOD_WAIT:
        error = object_of(answer.body).get("error")
        seconds = error.get("seconds") if isinstance(error, dict) else None
        if isinstance(seconds, int) and 0 <= seconds < 10_000_000:
            asked = timedelta(seconds=seconds)
    return min(max(asked, _SHORTEST_RETRY_AFTER), _LONGEST_RETRY_AFTER)


def _bearer(access_token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {access_token}"}


def _level(body: Mapping[str, Any]) -> Level:
    error = body.get("error")
    level = error.get("level") if isinstance(error, dict) else None
    return _LEVELS.get(str(level), Level.ACCOUNT)


def _quotas(headers: Mapping[bytes, bytes]) -> Sequence[Quota]:
    """Reads `LEFT;SECONDS`; nearly every answer has none."""
    if _QUOTAS.keys().isdisjoint(headers):
        return ()
    read = ((level, headers[name].partition(b";")) for name, level in _QUOTAS.items() if name in headers)
    return tuple(
        Quota(
            level=level,
            remaining=int(left),
            reset_after=min(timedelta(seconds=int(seconds)), _LONGEST_RETRY_AFTER),
        )
        for level, (left, _, seconds) in read
        if _is_number(left) and _is_number(seconds)
    )


def _is_number(text: bytes) -> bool:
    return text.isdigit() and len(text) < 10
