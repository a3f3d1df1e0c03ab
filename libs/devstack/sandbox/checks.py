"""Refusals of the sandbox provider, which come before any fault."""

import json

from devstack.sandbox.http1 import Request
from devstack.sandbox.posts import Post, Surface

LONGEST_TEXT = 5_000
GOOD_TOKEN = "Bearer sandbox-"
REVOKED_TOKEN = "Bearer sandbox-revoked"
READ_ONLY_TOKEN = "Bearer sandbox-readonly"
MISSING = "missing"
BLOCKED = "blocked"


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str, *, headers: str = "", **more: object) -> None:
        """`headers` are whole lines; `more` are further fields of the error."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers
        self.more = more


def authorised(request: Request) -> str:
    token = request.headers.get("authorization", "")
    if not token.startswith(GOOD_TOKEN) or token == REVOKED_TOKEN:
        raise Refusal(401, "UNAUTHENTICATED", "this token is not valid")
    return token


def exists(name: str, what: str) -> None:
    if name.startswith(MISSING):
        raise Refusal(404, f"{what.upper()}_NOT_FOUND", f"there is no such {what}")


def may_post(request: Request, account: str) -> None:
    if authorised(request) == READ_ONLY_TOKEN:
        raise Refusal(403, "FORBIDDEN", "this token may read but not post")
    exists(account, "account")


def validated(account: str, surface: Surface, key: str, request: Request) -> Post:
    """Returns the post that a request contains. `may_post` has been called."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "UNSUPPORTED_MEDIA_TYPE", "send application/json")
    channel, destination, text, follows = _content(request.body)
    if not text.strip():
        raise Refusal(400, "EMPTY_TEXT", "the text is empty")
    if len(text) > LONGEST_TEXT:
        raise Refusal(400, "TEXT_TOO_LONG", f"the text is longer than {LONGEST_TEXT} characters")
    exists(destination, "destination")
    if destination.startswith(BLOCKED):
        raise Refusal(403, "PEER_BLOCKED", "this contact has blocked the account")
    return Post(
        account=account,
        channel=channel,
        destination=destination,
        text=text,
        key=key,
        surface=surface,
        follows=follows,
    )


def _content(body: bytes) -> tuple[str, str, str, str]:
    try:
        content = json.loads(body)
    except ValueError:
        raise Refusal(400, "MALFORMED", "the body is not JSON") from None
    if not isinstance(content, dict):
        raise Refusal(422, "INVALID_FIELD", "the body is not an object")
    channel, destination, text = content.get("channel"), content.get("destination", ""), content.get("text")
    follows = content.get("follows", "")
    if not isinstance(channel, str) or not channel:
        raise Refusal(422, "INVALID_FIELD", "channel must be a string that is not empty")
    if not isinstance(destination, str):
        raise Refusal(422, "INVALID_FIELD", "destination must be a string")
    if not isinstance(text, str):
        raise Refusal(422, "INVALID_FIELD", "text must be a string")
    if not isinstance(follows, str):
        raise Refusal(422, "INVALID_FIELD", "follows must be a string")
    return channel, destination, text, follows
