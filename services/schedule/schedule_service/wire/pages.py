"""How much of a listing one answer holds."""

from collections.abc import Iterable
from typing import TypeVar

from google.protobuf.message import Message

M = TypeVar("M", bound=Message)

_ROOM = 192 * 1024  # bytes, of the 256 KiB that a message may have


def fitting(found: Iterable[M], size: int) -> tuple[list[M], bool]:
    """The first `size` of them, or fewer when these are large; and whether any are left over."""
    page: list[M] = []
    room = _ROOM
    for message in found:
        room -= message.ByteSize()
        if len(page) == size or (page and room < 0):
            return page, True
        page.append(message)
    return page, False
