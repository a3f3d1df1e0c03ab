"""Reads the dimensions of pictures from their headers. Nothing is decoded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from publisher_service.adapters.media.window import Unreadable, Window

Order = Literal["big", "little"]

_WIDTH, _HEIGHT, _ORIENTATION = 256, 257, 274
_MOST_TAGS: Final = 512
_SHORT, _LONG = 3, 4
# The markers of a JPEG that begin its frame, and those that have no length.
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_BARE: Final = frozenset({0x01, *range(0xD0, 0xD8)})
# Between the blocks of a GIF.
_EXTENSION, _PICTURE, _END = 0x21, 0x2C, 0x3B


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    width: int
    height: int
    is_animated: bool = False


def measure(content_type: str, window: Window) -> Measures:
    """Raises Unreadable."""
    return _READERS[content_type](window)


def _jpeg(window: Window) -> Measures:
    offset, turned = 2, False
    while True:
        marker = window.at(offset, 2)
        if marker[0] != 0xFF:
            raise Unreadable("it is no JPEG")
        if marker[1] == 0xFF:  # filling
            offset += 1
        elif marker[1] in _BARE:
            offset += 2
        elif marker[1] in _FRAMES:
            height, width = window.number(offset + 5, 2), window.number(offset + 7, 2)
            return Measures(width=height, height=width) if turned else Measures(width=width, height=height)
        elif marker[1] in {0xD9, 0xDA}:
            raise Unreadable("it has no picture")
        else:
            length = window.number(offset + 2, 2)
            if length < 2:
                raise Unreadable("it is no JPEG")
            if marker[1] == 0xE1 and length >= 16 and window.at(offset + 4, 6) == b"Exif\0\0":
                turned = turned or _is_turned(window, offset + 10, offset + 2 + length)
            offset += 2 + length


def _is_turned(window: Window, base: int, end: int) -> bool:
    """Returns whether the picture lies on its side. Exif that cannot be read turns nothing, as in browsers."""
    try:
        return _tags(window, base, end).get(_ORIENTATION, 1) in {5, 6, 7, 8}
    except Unreadable:
        return False


def _tags(window: Window, base: int, end: int) -> Mapping[int, int]:
    """Returns the tags of a TIFF's first directory that are single numbers."""
    order: Order = "little" if window.at(base, 2) == b"II" else "big"
    start = base + window.number(base + 4, 4, order)
    count = window.number(start, 2, order)
    found: dict[int, int] = {}
    for entry in range(start + 2, start + 2 + 12 * min(count, _MOST_TAGS), 12):
        if entry + 12 > end:
            raise Unreadable("it is cut off")
        tag, kind = window.number(entry, 2, order), window.number(entry + 2, 2, order)
        if kind in {_SHORT, _LONG} and window.number(entry + 4, 4, order) == 1:
            found.setdefault(tag, window.number(entry + 8, 2 if kind == _SHORT else 4, order))
    return found


def _tiff(window: Window) -> Measures:
    tags = _tags(window, 0, window.size)
    width, height = tags.get(_WIDTH, 0), tags.get(_HEIGHT, 0)
    if tags.get(_ORIENTATION, 1) in {5, 6, 7, 8}:
        width, height = height, width
    return Measures(width=width, height=height)


def _png(window: Window) -> Measures:
    if window.at(8, 8) != b"\0\0\0\rIHDR":
        raise Unreadable("it is no PNG")
    width, height = window.number(16, 4), window.number(20, 4)
    offset = 33
    while (name := window.at(offset + 4, 4)) not in {b"IDAT", b"IEND", b"acTL"}:
        offset += 12 + window.number(offset, 4)
    return Measures(width=width, height=height, is_animated=name == b"acTL")


def _gif(window: Window) -> Measures:
    width, height = window.number(6, 2, "little"), window.number(8, 2, "little")
    return Measures(width=width, height=height, is_animated=_has_two_frames(window))


def _has_two_frames(window: Window) -> bool:
    """Walks to the second picture. A first one of more than 12 MB ends that: then it takes the file for animated."""
    offset, frames = 13 + _palette(window.at(10, 1)[0]), 0
    try:
        while (block := window.at(offset, 1)[0]) != _END:
            if block == _PICTURE:
                frames += 1
                if frames == 2:
                    return True
                offset += 11 + _palette(window.at(offset + 9, 1)[0])
            elif block == _EXTENSION:
                offset += 2
            else:
                raise Unreadable("it is no GIF")
            while length := window.at(offset, 1)[0]:
                offset += 1 + length
            offset += 1
    except Unreadable:
        if not frames:
            raise
        return window.has_led_far  # many viewers show what is there of a GIF that is cut off
    if not frames:
        raise Unreadable("it has no picture")
    return False


def _palette(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _webp(window: Window) -> Measures:
    name = window.at(12, 4)
    if name == b"VP8X":
        width, height = window.number(24, 3, "little") + 1, window.number(27, 3, "little") + 1
        return Measures(width=width, height=height, is_animated=bool(window.at(20, 1)[0] & 2))
    if name == b"VP8L" and window.at(20, 1) == b"\x2f":
        bits = window.number(21, 4, "little")
        return Measures(width=(bits & 0x3FFF) + 1, height=(bits >> 14 & 0x3FFF) + 1)
    if name == b"VP8 " and window.at(23, 3) == b"\x9d\x01\x2a":
        return Measures(width=window.number(26, 2, "little") & 0x3FFF, height=window.number(28, 2, "little") & 0x3FFF)
    raise Unreadable("it is no WebP")


def _bmp(window: Window) -> Measures:
    if window.number(14, 4, "little") == 12:
        return Measures(width=window.number(18, 2, "little"), height=window.number(20, 2, "little"))
    # A negative height says that the rows go from top to bottom.
    height = int.from_bytes(window.at(22, 4), "little", signed=True)
    return Measures(width=window.number(18, 4, "little"), height=abs(height))


_READERS: Final[Mapping[str, Callable[[Window], Measures]]] = {
    "image/bmp": _bmp,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/png": _png,
    "image/tiff": _tiff,
    "image/webp": _webp,
}
