"""The size of a page in a response."""

from collections.abc import Iterable
from typing import TypeVar

from google.protobuf.message import Message

M = TypeVar("M", bound=Message)

_ROOM = 192 * 1024  # bytes, of the 256 KiB that a message may have


def fitting(found: Iterable[M], size: int) -> tuple[list[M], bool]:
    """Returns at most `size` messages, fewer if they are large, and whether any are left."""
    page: list[M] = []
    room = _ROOM
    for message in found:
        room -= message.ByteSize()
        if len(page) == size or (page and room < 0):
            return page, True
        page.append(message)
    return page, False
