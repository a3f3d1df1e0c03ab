"""Dimensions and duration of films stand in their boxes, wherever those are; broken or hostile boxes are refused."""

import os
import struct
from datetime import timedelta
from pathlib import Path

import pytest

from publisher_service.adapters.media.films import Film, read_film
from publisher_service.adapters.media.window import Unreadable, Window
from tests.unit.publisher_service.media_samples import (
    BRAND,
    DATA,
    FILM,
    MOVIE,
    QUARTER_TURN,
    SECONDS,
    UPSIDE_DOWN,
    box,
    movie_header,
    on_disk,
    track,
)

PLAIN = Film(width=640, height=360, duration=SECONDS)
HOUR = timedelta(hours=1)


def read(folder: Path, content: bytes) -> Film:
    file = os.open(on_disk(folder, content), os.O_RDONLY)
    try:
        return read_film(Window(file, len(content)))
    finally:
        os.close(file)


def film(*movie: bytes) -> bytes:
    return BRAND + box(b"moov", *movie) + DATA


@pytest.mark.parametrize(
    "content",
    [
        FILM,
        BRAND + DATA + MOVIE,
        DATA + MOVIE,
        BRAND + box(b"mdat", bytes(200_000)) + MOVIE,
        BRAND + box(b"mdat", bytes(200_000), is_long=True) + MOVIE,
        BRAND + box(b"moov", movie_header(SECONDS), track(), is_long=True) + DATA,
        BRAND + MOVIE + box(b"mdat", bytes(3000), size=0),
        BRAND + DATA + box(b"moov", movie_header(SECONDS), track(), size=0),
        BRAND + box(b"free") * 500 + MOVIE + bytes(4),
        film(movie_header(SECONDS, version=1), track(version=1)),
        film(track(), movie_header(SECONDS)),
        film(movie_header(SECONDS), track(0, 0, handler=b"soun"), track()),
        film(movie_header(SECONDS), track(0, 0), track()),
        film(movie_header(SECONDS), track(9, 9, handler=b"text"), track(matrix=UPSIDE_DOWN), track(1, 1)),
        film(movie_header(SECONDS), track(), bytes(4)),
    ],
    ids=[
        "moov first",
        "moov last",
        "no brand",
        "far away",
        "64 bits",
        "64 bits of moov",
        "data until the end",
        "moov until the end",
        "many boxes",
        "version 1",
        "track first",
        "sound first",
        "no measures",
        "upside down",
        "zeros at the end",
    ],
)
def test_a_film_is_read_wherever_its_index_is(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path, content) == PLAIN


def test_a_film_that_lies_on_its_side_is_turned(tmp_path: Path) -> None:
    found = read(tmp_path, film(movie_header(SECONDS), track(matrix=QUARTER_TURN)))
    assert (found.width, found.height) == (360, 640)


@pytest.mark.parametrize(
    ("header", "more", "duration"),
    [
        (movie_header(SECONDS, scale=90_000), b"", SECONDS),
        (movie_header(SECONDS, ticks=0), b"", None),
        (movie_header(SECONDS, ticks=0xFFFF_FFFF), b"", None),
        (movie_header(SECONDS, ticks=2**64 - 1, version=1), b"", None),
        (movie_header(SECONDS, ticks=0), box(b"mvex", box(b"mehd", bytes(4), struct.pack(">I", 3_600_000))), HOUR),
        (
            movie_header(SECONDS, ticks=0),
            box(b"mvex", box(b"mehd", b"\1" + bytes(3), struct.pack(">Q", 3_600_000))),
            HOUR,
        ),
        (movie_header(SECONDS, ticks=0), box(b"mvex", box(b"trex", bytes(24))), None),
        (movie_header(SECONDS, scale=0, ticks=0), b"", None),
    ],
)
def test_a_duration_is_said_or_unknown(tmp_path: Path, header: bytes, more: bytes, duration: timedelta | None) -> None:
    assert read(tmp_path, film(header, track(), more)).duration == duration


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (BRAND + DATA, "no index"),
        (FILM[:-1], "cut off"),
        (FILM[: len(BRAND) + 60], "cut off"),
        (BRAND + DATA + MOVIE[:-9], "cut off"),
        (film(movie_header(SECONDS)), "no pictures"),
        (film(movie_header(SECONDS), track(handler=b"soun")), "no pictures"),
        (film(movie_header(SECONDS), track(0, 0)), "no pictures"),
        (film(track()), "broken"),
        (film(box(b"mvhd", bytes(8)), track()), "broken"),
        (film(movie_header(SECONDS), track(version=7)), "broken"),
        (film(movie_header(SECONDS, scale=0, ticks=5), track()), "absurd"),
        (film(movie_header(SECONDS, scale=1, ticks=2**32 - 2), track()), "absurd"),
        (film(movie_header(SECONDS, scale=1, ticks=2**64 - 2, version=1), track()), "absurd"),
        (BRAND + box(b"moov", movie_header(SECONDS), box(b"trak", bytes(99), size=2**31)) + DATA, "cut off"),
        (BRAND + box(b"moov", movie_header(SECONDS), box(b"trak", size=7)) + DATA, "broken"),
        (BRAND + struct.pack(">I4sQ", 1, b"moov", 15) + MOVIE, "broken"),
        (BRAND + struct.pack(">I4sQ", 1, b"moov", 2**64 - 1) + MOVIE, "cut off"),
        (BRAND + box(b"free") * 3000 + MOVIE, "broken"),
        (BRAND + box(b"moov", movie_header(SECONDS), box(b"trak") * 3000) + DATA, "broken"),
        (BRAND + box(b"moov", movie_header(SECONDS), box(b"trak", *[box(b"free")] * 1900) * 1900) + DATA, "too many"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_or_hostile_film_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(tmp_path, content)
