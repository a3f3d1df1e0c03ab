"""Reads dimensions and duration of MP4 and MOV files from their boxes (ISO/IEC 14496-12). Nothing is decoded."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from publisher_service.adapters.media.window import Unreadable, Window

_MOST_BOXES: Final = 2000
_LONGEST: Final = timedelta(days=7)
# A track header ends with matrix, width and height; the entries of a matrix and the measures are fixed-point numbers.
_TRACK_HEADERS: Final = {0: 24 + 60, 1: 36 + 60}


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    width: int
    height: int
    # None if the file does not say, as files that are still being streamed.
    duration: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    name: bytes
    begin: int  # of what is inside
    end: int


def read_film(window: Window) -> Film:
    """Raises Unreadable."""
    # All of them, though `moov` may come first: the file is cut off if the last one ends behind it.
    movie = [box for box in _boxes(window, 0, window.size) if box.name == b"moov"]
    if not movie:
        raise Unreadable("it has no index (moov)")
    inside = list(_boxes(window, movie[0].begin, movie[0].end))
    width, height = _measures(window, inside)
    return Film(width=width, height=height, duration=_duration(window, inside))


def _boxes(window: Window, begin: int, end: int) -> Iterator[_Box]:
    """Yields the boxes that lie in a row there; each lies within, or the file is unreadable."""
    count = 0
    while begin < end:
        count += 1
        # Some writers end a list of boxes with four zeros.
        if count > 1 and end - begin < 8:
            return
        size, header = window.number(begin, 4), 8
        name = window.at(begin + 4, 4)
        if size == 1:
            size, header = window.number(begin + 8, 8), 16
        elif size == 0:
            size = end - begin
        if size < header or count > _MOST_BOXES:
            raise Unreadable("its boxes are broken")
        if begin + size > end:
            raise Unreadable("it is cut off")
        yield _Box(name=name, begin=begin + header, end=begin + size)
        begin += size


def _inside(window: Window, boxes: list[_Box], name: bytes) -> list[_Box]:
    found = next((box for box in boxes if box.name == name), None)
    return [] if found is None else list(_boxes(window, found.begin, found.end))


def _measures(window: Window, movie: list[_Box]) -> tuple[int, int]:
    """Returns width and height of the first track of pictures."""
    for track in (box for box in movie if box.name == b"trak"):
        boxes = list(_boxes(window, track.begin, track.end))
        header = next((box for box in boxes if box.name == b"tkhd"), None)
        if header is not None and _handler(window, boxes) == b"vide":
            width, height = _shown(window, header)
            if width and height:
                return width, height
    raise Unreadable("it has no pictures")


def _handler(window: Window, track: list[_Box]) -> bytes:
    handler = next((box for box in _inside(window, track, b"mdia") if box.name == b"hdlr"), None)
    return b"" if handler is None else _field(window, handler, 8, 4)


def _shown(window: Window, header: _Box) -> tuple[int, int]:
    """Returns the measures after the rotation that the matrix asks for."""
    at = _TRACK_HEADERS.get(_field(window, header, 0, 1)[0])
    if at is None:
        raise Unreadable("its boxes are broken")
    matrix = at - 44
    width, height = (int.from_bytes(_field(window, header, at - 8 + place, 2), "big") for place in (0, 4))
    # a and d are zero after a quarter turn.
    upright = any(_field(window, header, matrix + place, 4) != bytes(4) for place in (0, 16))
    is_turned = not upright and _field(window, header, matrix + 4, 4) != bytes(4)
    return (height, width) if is_turned else (width, height)


def _duration(window: Window, movie: list[_Box]) -> timedelta | None:
    header = next((box for box in movie if box.name == b"mvhd"), None)
    if header is None:
        raise Unreadable("its boxes are broken")
    is_long = _field(window, header, 0, 1) == b"\1"
    scale = int.from_bytes(_field(window, header, 20 if is_long else 12, 4), "big")
    length = _field(window, header, 24 if is_long else 16, 8 if is_long else 4)
    if length.strip(b"\xff") == b"" or not any(length):
        length = _fragments(window, movie)
    if not any(length):
        return None
    # Before it is a duration: that has a maximum.
    seconds = int.from_bytes(length, "big") / scale if scale else _LONGEST.total_seconds() + 1
    if seconds > _LONGEST.total_seconds():
        raise Unreadable("its duration is absurd")
    return timedelta(seconds=seconds)


def _fragments(window: Window, movie: list[_Box]) -> bytes:
    """Returns the duration of a film in fragments, in the scale of the movie; empty if it is not said."""
    header = next((box for box in _inside(window, movie, b"mvex") if box.name == b"mehd"), None)
    if header is None:
        return b""
    return _field(window, header, 4, 8 if _field(window, header, 0, 1) == b"\1" else 4)


def _field(window: Window, box: _Box, offset: int, length: int) -> bytes:
    if box.begin + offset + length > box.end:
        raise Unreadable("its boxes are broken")
    return window.at(box.begin + offset, length)
