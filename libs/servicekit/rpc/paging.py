"""Page tokens and resume tokens, opaque to the caller and valid only for the request that they were issued for."""

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from servicekit.faults import InvalidField

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200

Cursor = tuple[str | int, ...]

_OF_THE_CALL = ("page_token", "page_size", "resume_token")
"""The fields that may differ between the calls of one request."""
_DIGEST = 8  # bytes; it detects mistakes, not forgery: a cursor is only a position within what the caller may see


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    size: int
    after: Cursor | None  # the position after which the page begins; None: the beginning


def read_page(request: Any, *, default: int = DEFAULT_PAGE_SIZE, most: int = MAX_PAGE_SIZE) -> Page:
    """Reads `page_size` and `page_token` of a request."""
    if not 0 <= request.page_size <= most:
        raise InvalidField("page_size", f"must be 0 to {most}")
    return Page(
        size=request.page_size or default,
        after=_read(request, "page_token") if request.page_token else None,
    )


def next_page_token(request: Message, last: Cursor) -> str:
    """Returns the token of the page after `last`, for the same request."""
    return _write(request, last)


def read_resume_token(request: Any) -> Cursor | None:
    """Reads `resume_token` of a request; None: it has none."""
    return _read(request, "resume_token") if request.resume_token else None


def resume_token(request: Message, last: Cursor) -> str:
    """Returns the token with which the same request goes on after `last`."""
    return _write(request, last)


def _write(request: Message, position: Cursor) -> str:
    cursor = json.dumps(position, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_digest(request, cursor) + cursor).rstrip(b"=").decode()


def _read(request: Any, field: str) -> Cursor:
    token = getattr(request, field)
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError):
        raw = b""
    digest, cursor = raw[:_DIGEST], raw[_DIGEST:]
    if digest != _digest(request, cursor):
        raise InvalidField(field, "was not issued for this request")
    return tuple(json.loads(cursor))


def _digest(request: Message, cursor: bytes) -> bytes:
    """Hashes the position and all fields that select rows; the page size may change between pages."""
    bare = type(request)()
    bare.CopyFrom(request)
    for field in _OF_THE_CALL:
        if field in bare.DESCRIPTOR.fields_by_name:
            bare.ClearField(field)
    content = bare.SerializeToString(deterministic=True)
    key = f"{bare.DESCRIPTOR.full_name}\n".encode()
    return hashlib.blake2b(key + len(content).to_bytes(4) + content + cursor, digest_size=_DIGEST).digest()
