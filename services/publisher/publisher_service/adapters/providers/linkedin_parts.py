"""Parts of an upload: where each goes, and its bytes out of one pass over a file."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from publisher_service.adapters.providers.answers import number_in
from servicekit.record import record

_LONGEST_URL: Final = 8000


@record(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a file, and the address to which it is uploaded."""

    url: str
    size: int


def parts_of(value: Mapping[str, Any], *, size: int) -> tuple[Part, ...]:
    """Returns the parts that an answer asks for; none unless they are exactly the whole file, in its order."""
    instructions = value.get("uploadInstructions")
    if instructions is None:
        url = value.get("uploadUrl")
        return (Part(url=url, size=size),) if isinstance(url, str) and len(url) <= _LONGEST_URL else ()
    parts: list[Part] = []
    end = 0
    for each in instructions if isinstance(instructions, list) else ():
        if not isinstance(each, dict):
            return ()
        url, first, last = each.get("uploadUrl"), number_in(each, "firstByte"), number_in(each, "lastByte")
        if not isinstance(url, str) or len(url) > _LONGEST_URL or first != end or last is None or last < first:
            return ()
        end = last + 1
        parts.append(Part(url=url, size=end - first))
    return tuple(parts) if end == size else ()


class Cut:
    """Cuts the pieces of a file into parts, one after the other."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    async def take(self, size: int) -> AsyncIterator[bytes]:
        """Yields the next `size` bytes of the file."""
        while size > 0:
            piece = self._left or await anext(self._pieces, b"")
            if not piece:
                raise EOFError("the file is shorter than it was")
            now, self._left = piece[:size], piece[size:]
            size -= len(now)
            yield now
