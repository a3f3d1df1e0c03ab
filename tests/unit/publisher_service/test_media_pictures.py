"""Dimensions of pictures are those that Pillow finds; broken pictures are refused."""

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from publisher_service.adapters.media.pictures import Measures, measure
from publisher_service.adapters.media.window import Unreadable, Window
from tests.unit.publisher_service.media_samples import FORMATS, encoded, moving, on_disk, picture, turned


@pytest.fixture
def measured(tmp_path: Path) -> "Measured":
    return Measured(tmp_path)


class Measured:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, content_type: str, content: bytes) -> Measures:
        file = os.open(on_disk(self._folder, content), os.O_RDONLY)
        try:
            return measure(content_type, Window(file, len(content)))
        finally:
            os.close(file)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (40, 30), (257, 4097), (5000, 3)])
@pytest.mark.parametrize("content_type", FORMATS)
def test_every_format_is_measured(measured: Measured, content_type: str, width: int, height: int) -> None:
    found = measured(content_type, picture(content_type, width, height))
    assert found == Measures(width=width, height=height)


@pytest.mark.parametrize("orientation", range(1, 10))
@pytest.mark.parametrize("content_type", ["image/jpeg"])
def test_a_photo_that_lies_on_its_side_is_turned(measured: Measured, content_type: str, orientation: int) -> None:
    found = measured(content_type, turned(content_type, orientation))
    assert (found.width, found.height) == ((30, 40) if orientation in {5, 6, 7, 8} else (40, 30))


@pytest.mark.parametrize("options", [{"progressive": True}, {"quality": 1}, {"icc_profile": b"x" * 200_000}])
def test_every_jpeg_has_its_frame_found(measured: Measured, options: dict[str, Any]) -> None:
    assert measured("image/jpeg", picture("image/jpeg", 40, 30, **options)) == Measures(width=40, height=30)


@pytest.mark.parametrize("options", [{"lossless": True}, {"quality": 5}, {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0"}])
def test_every_webp_is_measured(measured: Measured, options: dict[str, Any]) -> None:
    assert measured("image/webp", picture("image/webp", 1234, 567, **options)) == Measures(width=1234, height=567)


@pytest.mark.parametrize("content_type", ["image/png", "image/gif", "image/webp"])
def test_moving_pictures_differ_from_still_ones(measured: Measured, content_type: str) -> None:
    assert measured(content_type, moving(content_type)).is_animated
    assert not measured(content_type, moving(content_type, frames=1)).is_animated


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "I;16", "CMYK"])
@pytest.mark.parametrize("content_type", FORMATS)
def test_every_mode_is_measured(measured: Measured, content_type: str, mode: str) -> None:
    try:
        content = encoded(Image.new(mode, (31, 17)), content_type)
    except (OSError, ValueError):
        return  # the format has no such mode
    assert measured(content_type, content) == Measures(width=31, height=17)


def test_a_bitmap_may_go_from_top_to_bottom(measured: Measured) -> None:
    content = bytearray(picture("image/bmp"))
    content[22:26] = (-30).to_bytes(4, "little", signed=True)
    assert measured("image/bmp", bytes(content)) == Measures(width=40, height=30)


def test_an_old_bitmap_is_measured(measured: Measured) -> None:
    header = b"BM" + bytes(12) + b"\x0c\0\0\0" + b"\x28\0" + b"\x1e\0" + bytes(99)
    assert measured("image/bmp", header) == Measures(width=40, height=30)


@pytest.mark.parametrize("content_type", FORMATS)
def test_a_picture_that_breaks_off_in_its_header_is_refused(measured: Measured, content_type: str) -> None:
    content = picture(content_type)
    for length in range(2, 20):
        with pytest.raises(Unreadable):
            measured(content_type, content[:length])


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("image/jpeg", b"\xff\xd8\xff\xd9" + bytes(20)),
        ("image/jpeg", b"\xff\xd8" + b"\xff" * 200_000),
        ("image/jpeg", b"\xff\xd8" + b"\xff\xe1\0\x02" * 200_000),
        ("image/jpeg", b"\xff\xd8\xff\xe1\0\0" + bytes(20)),
        ("image/jpeg", b"\xff\xd8\xff\xd0" * 200_000),
        ("image/jpeg", b"\xff\xd8\xff\xe0\0\x04\0\0nonsense" + bytes(20)),
        ("image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIDAT" + bytes(40)),
        ("image/png", picture("image/png")[:33] + b"\0\0\0\0tEXt\0\0\0\0" * 100_000),
        ("image/gif", b"GIF89a" + bytes(6) + b"\0;" + bytes(20)),
        ("image/gif", b"GIF89a" + bytes(7) + b"\x21\xf9\0" * 200_000),
        ("image/gif", b"GIF89a" + bytes(7) + b"X" + bytes(40)),
        ("image/webp", b"RIFF\0\0\0\0WEBPVP8 " + bytes(40)),
        ("image/webp", b"RIFF\0\0\0\0WEBPALPH" + bytes(40)),
        ("image/tiff", b"II*\0\xff\xff\xff\xff" + bytes(40)),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:16].hex(),
)
def test_a_hostile_picture_is_refused_within_bounds(measured: Measured, content_type: str, content: bytes) -> None:
    with pytest.raises(Unreadable):
        measured(content_type, content)


def test_exif_that_cannot_be_read_turns_nothing(measured: Measured) -> None:
    content = turned("image/jpeg", 6)
    begin = content.index(b"Exif\0\0") + 6
    for broken in (b"\xff" * 8, b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x20"):
        cut = content[:begin] + broken + content[begin + 8 :]
        assert measured("image/jpeg", cut).width == 40


def test_a_gif_that_is_cut_off_in_its_only_frame_is_still(measured: Measured) -> None:
    content = picture("image/gif", 300, 300)
    assert not measured("image/gif", content[: len(content) - 20]).is_animated


def test_a_picture_measured_here_is_measured_alike_by_pillow(measured: Measured) -> None:
    for content_type in FORMATS:
        content = picture(content_type, 321, 123)
        with Image.open(BytesIO(content)) as image:
            found = measured(content_type, content)
            assert image.size == (found.width, found.height)
