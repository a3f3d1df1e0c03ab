"""No file makes a parser crash, or read without end."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from publisher_service.adapters.media import window
from publisher_service.adapters.media.probe import Probed, probe
from publisher_service.adapters.media.sniff import ENOUGH, sniff
from publisher_service.adapters.media.window import Unreadable, Window
from tests.unit.publisher_service.media_samples import (
    BRAND,
    FILM,
    FORMATS,
    MOVIE,
    PDF,
    SECONDS,
    WEBM,
    moving,
    on_disk,
    picture,
    turned,
)

SAMPLES = [
    *(picture(content_type) for content_type in FORMATS),
    *(moving(content_type) for content_type in ("image/png", "image/gif", "image/webp")),
    turned("image/jpeg", 6),
    picture("image/jpeg", progressive=True, icc_profile=b"x" * 70_000),
    picture("image/webp", lossless=True),
    FILM,
    BRAND + MOVIE,
    PDF,
    WEBM,
]


def probed(folder: Path, content: bytes) -> Probed | None:
    """Returns what is found out of a file; None if its type is refused. Raises Unreadable."""
    sniffed = sniff(content[:ENOUGH])
    if sniffed is None:
        return None
    file = os.open(on_disk(folder, content), os.O_RDONLY)
    try:
        return probe(sniffed, file, len(content))
    finally:
        os.close(file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("media")


def test_every_sample_is_probed(folder: Path) -> None:
    found = [probed(folder, sample) for sample in SAMPLES]
    assert all(each is not None for each in found)
    assert [each.duration for each in found if each and each.duration] == [SECONDS] * 2


@settings(max_examples=1500)
@given(
    st.sampled_from(SAMPLES),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=9)), max_size=5),
    st.floats(0, 1),
    st.binary(max_size=64),
)
def test_no_mutation_of_a_file_crashes_a_parser(
    folder: Path, sample: bytes, changes: list[tuple[float, bytes]], kept: float, more: bytes
) -> None:
    content = bytearray(sample)
    for place, changed in changes:
        # Headers matter most.
        begin = int(place**4 * len(content))
        content[begin : begin + len(changed)] = changed
    try:
        found = probed(folder, bytes(content[: int(kept**0.25 * len(content))]) + more)
    except Unreadable:
        return
    assert found is None or found.width == found.height == 0 or (0 < found.width <= 65535 and 0 < found.height <= 65535)


@settings(max_examples=500)
@given(st.sampled_from([sample[:begin] for sample in SAMPLES for begin in (4, 8, 12, 20)]), st.binary(max_size=400))
def test_no_bytes_behind_a_magic_number_crash_a_parser(folder: Path, magic: bytes, content: bytes) -> None:
    try:
        probed(folder, magic + content)
    except Unreadable:
        return


@pytest.mark.parametrize(
    ("content", "pages"),
    [
        (PDF, 2),
        (b"%PDF-1.4\n" + bytes(99), 0),
        (b"%PDF-1.4\n<< /Linearized 1 /L 5 /N 12 /T 1 >>" + PDF, 12),
        (b"%PDF-1.4\n<< /Linearized 1 /N 0 >>", 0),
        (b"%PDF-1.4\n<< /Type/Outlines /Count 9 >> <</Count 3/Kids[]/Type/Pages>>", 3),
        (b"%PDF-1.4\n<< /Type /Pages /Count 7 /Parent 1 0 R >>", 0),
        (b"%PDF-1.4\n" + bytes(200_000) + PDF, 2),
        (b"%PDF-1.4\n" + b"<<" * 100_000, 0),
        (b"%PDF-1.4\n" + b"<< /Type /Pages" * 20_000, 0),
        (b"%PDF-1.4\n<<" + b"/Linearized" * 9000, 0),
    ],
    ids=range(10),
)
def test_pages_are_counted_if_the_number_is_in_sight(folder: Path, content: bytes, pages: int) -> None:
    assert probed(folder, content) == Probed(page_count=pages)


@pytest.mark.parametrize("side", [0, 65_536, 2**31])
def test_absurd_dimensions_are_refused(folder: Path, side: int) -> None:
    content = bytearray(picture("image/png"))
    content[16:20] = side.to_bytes(4, "big")
    with pytest.raises(Unreadable, match="absurd"):
        probed(folder, bytes(content))


def test_a_window_ends_a_parser_that_reads_too_much(folder: Path) -> None:
    file = os.open(on_disk(folder, bytes(200_000)), os.O_RDONLY)
    try:
        for stride, most in ((0, 50_000), (70_000, window._MOST_PAGES)):
            opened = Window(file, 200_000)
            for number in range(most):
                opened.at(number * stride % 140_000, 1)
            assert not opened.has_led_far
            with pytest.raises(Unreadable, match="too many"):
                opened.at(most * stride % 140_000, 1)
            assert opened.has_led_far
    finally:
        os.close(file)
