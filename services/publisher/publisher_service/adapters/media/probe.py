"""Finds out what the bytes of a file say of it."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from channels.validation import MediaKind
from publisher_service.adapters.media.films import read_film
from publisher_service.adapters.media.pictures import measure
from publisher_service.adapters.media.sniff import Sniffed
from publisher_service.adapters.media.window import Unreadable, Window

# Larger ones are bombs: no provider takes a picture of more than 40,000 pixels a side.
_LONGEST_SIDE: Final = 65_535
# A PDF has its number of pages in the dictionary at the root of its pages, or, if it is linearized, at its beginning.
_SCANNED: Final = 64 * 1024
_DICTIONARY: Final = re.compile(rb"<<([^<>]{1,8192})>>")
_ROOT: Final = re.compile(rb"/Type\s{0,4}/Pages\b")
_COUNT: Final = re.compile(rb"/Count\s{1,4}(\d{1,6})\b")
_LINEARIZED: Final = re.compile(rb"<<[^<>]{0,256}/Linearized\b[^<>]{0,256}/N\s{1,4}(\d{1,6})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    width: int = 0
    height: int = 0
    duration: timedelta | None = None
    page_count: int = 0
    is_animated: bool = False


def probe(sniffed: Sniffed, file: int, size: int) -> Probed:
    """Raises Unreadable. Blocks for as long as the disk does."""
    window = Window(file, size)
    if sniffed.kind is MediaKind.IMAGE:
        found = measure(sniffed.content_type, window)
        return _checked(Probed(width=found.width, height=found.height, is_animated=found.is_animated))
    if sniffed.content_type in {"video/mp4", "video/quicktime"}:
        film = read_film(window)
        return _checked(Probed(width=film.width, height=film.height, duration=film.duration))
    if sniffed.kind is MediaKind.DOCUMENT:
        return Probed(page_count=_pages(window))
    return Probed()


def _checked(probed: Probed) -> Probed:
    for side in (probed.width, probed.height):
        if not 0 < side <= _LONGEST_SIDE:
            raise Unreadable("its dimensions are absurd")
    return probed


def _pages(window: Window) -> int:
    """Returns the number of pages if it stands in plain sight, which takes no parser; else 0."""
    length = min(window.size, _SCANNED)
    beginning, end = window.at(0, length), window.at(window.size - length, length)
    if linearized := _LINEARIZED.search(beginning[:1024]):
        return int(linearized[1])
    counts = [
        int(count[1])
        for part in (beginning, end)
        for dictionary in _DICTIONARY.findall(part)
        if _ROOT.search(dictionary) and b"/Parent" not in dictionary and (count := _COUNT.search(dictionary))
    ]
    # A file that was changed has the newest at its end.
    return counts[-1] if counts else 0
