"""The sandbox: a provider for development, with native idempotency keys and a look-up by key."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeGuard
from urllib.parse import quote, urlencode

import channels
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, ProviderDown
from publisher_service.adapters.providers.http_origin import Answer, ConnectionLost, HttpOrigin, NotConnected
from publisher_service.adapters.providers.texts import is_name, storable
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    NoProof,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)

_RETRY_AFTER = timedelta(seconds=5)
_SHORTEST_RETRY_AFTER = timedelta(seconds=1)
_LONGEST_RETRY_AFTER = timedelta(hours=24)


class SandboxAdapter:
    name = "sandbox"
    channels = channels.KNOWN

    def __init__(self, origin: HttpOrigin, limits: Limits) -> None:
        self.limits = limits
        self._origin = origin

    async def verify(self, external_account_id: str, access_token: str) -> None:
        try:
            answer = await self._origin.get(
                _account(external_account_id),
                {"Authorization": f"Bearer {access_token}"},
                timeout=self.limits.request_timeout,
            )
        except (NotConnected, ConnectionLost, TimeoutError) as error:
            raise ProviderDown(type(error).__name__) from None
        if answer.status in (401, 403, 404):
            raise CredentialsRefused(f"the sandbox answered {answer.status}")
        if answer.status != 200:
            raise ProviderDown(f"the sandbox answered {answer.status}")

    async def send(self, post: Post) -> Outcome:
        body = json.dumps({"channel": post.channel, "destination": post.destination, "text": post.text})
        headers = {
            "Authorization": f"Bearer {post.access_token}",
            "Idempotency-Key": post.idempotency_key,
            "Content-Type": "application/json",
        }
        try:
            answer = await self._origin.post(
                f"{_account(post.external_account_id)}/posts",
                headers,
                body.encode(),
                timeout=self.limits.request_timeout,
            )
        except NotConnected as error:
            return NotSent(reason="CONNECTION_REFUSED", message=f"the sandbox cannot be reached: {error}")
        except TimeoutError:
            return Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="the sandbox did not answer in time")
        except ConnectionLost as error:
            return Ambiguous(reason="CONNECTION_LOST", message=f"the connection broke: {error}")
        return _classify(answer)

    async def look(self, post: Post) -> Finding:
        wanted = urlencode({"account": post.external_account_id, "idempotency_key": post.idempotency_key})
        try:
            answer = await self._origin.get(
                f"/v1/posts?{wanted}",
                {"Authorization": f"Bearer {post.access_token}"},
                timeout=self.limits.request_timeout,
            )
        except (NotConnected, ConnectionLost, TimeoutError) as error:
            return NoProof(message=f"the look-up failed: {type(error).__name__}")
        if answer.status == 401:
            return AuthRefused(message="the sandbox refused the credentials")
        if answer.status != 200:
            return NoProof(message=f"the look-up answered {answer.status}")
        return _found(_object(answer.body))


def _account(external_account_id: str) -> str:
    """Returns the path of an account. The id is one segment of it; `..` can never be connected."""
    return f"/v1/accounts/{quote(external_account_id, safe='')}"


def _classify(answer: Answer) -> Outcome:
    status, body = answer.status, _object(answer.body)
    if status in (200, 201):
        external_id, url = body.get("id"), body.get("url")
        if _is_name(external_id) and isinstance(url, str):
            return Accepted(
                external_id=external_id, external_url=storable(url), publish_time=_time(body.get("create_time"))
            )
        return Ambiguous(reason="UNREADABLE_ANSWER", message="the sandbox accepted, but its answer cannot be read")
    message = _message(body, status)
    if status == 401:
        return AuthRefused(message=message)
    if status == 429:
        return RateLimited(message=message, retry_after=_retry_after(answer.headers))
    reason = _reason(body, status)
    # In progress, or already out under this key: the refusal of a repeat says nothing about the first request.
    repeat = status == 409 or reason == "IDEMPOTENCY_KEY_REUSED"
    if 400 <= status < 500 and status != 408 and not repeat:
        return Rejected(reason=reason, message=message)
    return Ambiguous(reason=reason, message=message)


def _object(answer: bytes) -> dict[str, Any]:
    try:
        body = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _message(body: Mapping[str, Any], status: int) -> str:
    error = body.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return storable(str(message)[:500]) if message else f"the sandbox answered {status}"


def _reason(body: Mapping[str, Any], status: int) -> str:
    error = body.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return storable(str(code).upper()[:64]) if code else f"HTTP_{status}"


def _is_name(value: object) -> TypeGuard[str]:
    """Returns whether the value is a name that can be stored unchanged: any other proves nothing."""
    return isinstance(value, str) and is_name(value)


def _time(value: object) -> datetime | None:
    """Returns when the post went out; None if the sandbox does not say, or not readably."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time if time is not None and time.tzinfo is not None else None


def _retry_after(headers: Mapping[bytes, bytes]) -> timedelta:
    text = headers.get(b"retry-after", b"")
    asked = timedelta(seconds=int(text)) if text.isdigit() and len(text) < 7 else _RETRY_AFTER
    return min(max(asked, _SHORTEST_RETRY_AFTER), _LONGEST_RETRY_AFTER)


def _found(body: Mapping[str, Any]) -> Finding:
    posts = body.get("posts")
    if not isinstance(posts, list):
        return NoProof(message="the look-up's answer cannot be read")
    match posts:
        case []:
            return Absent()
        case [{"id": external_id, "url": str(url)} as post] if _is_name(external_id):
            return Found(
                external_id=external_id, external_url=storable(url), publish_time=_time(post.get("create_time"))
            )
        case _:
            return NoProof(message=f"the look-up found {len(posts)} posts under one key")
