"""The first bytes tell the type of a file; everything that is no picture, film or PDF is refused."""

import pytest

from channels.validation import MediaKind
from publisher_service.adapters.media.sniff import ENOUGH, looks_like, sniff
from tests.unit.publisher_service.media_samples import BRAND, DATA, FILM, FORMATS, MOVIE, PDF, WEBM, box, picture

IMAGE, VIDEO, DOCUMENT = MediaKind
KNOWN = [
    *((IMAGE, content_type, picture(content_type)) for content_type in FORMATS),
    (VIDEO, "video/mp4", FILM),
    (VIDEO, "video/mp4", box(b"ftyp", b"XXXX", bytes(4), b"YYYYmp42")),
    (VIDEO, "video/quicktime", box(b"ftyp", b"qt  ", bytes(4), b"qt  ")),
    (VIDEO, "video/quicktime", DATA + MOVIE),
    (VIDEO, "video/webm", WEBM),
    (DOCUMENT, "application/pdf", PDF),
]
UNKNOWN = {
    "empty": b"",
    "html": b"<!DOCTYPE html><html><body>login</body></html>",
    "html later": b"\n\n  <HTML>",
    "html with a mark": b"\xef\xbb\xbf<html>",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "xml": b"<?xml version='1.0'?><svg/>",
    "text": b"BM is how a text may begin",
    "json": b'{"error": "not found"}',
    "script": b"#!/bin/sh\nrm -rf /",
    "windows": b"MZ\x90\x00",
    "linux": b"\x7fELF\x02\x01",
    "zip": b"PK\x03\x04",
    "gzip": b"\x1f\x8b\x08",
    "matroska": WEBM.replace(b"webm", b"matr"),
    "heic": box(b"ftyp", b"heic", bytes(4), b"mif1heicisom"),
    "avif": box(b"ftyp", b"avif", bytes(4), b"avifmif1"),
    "sound": box(b"ftyp", b"M4A ", bytes(4), b"M4A mp42isom"),
    "mp3": b"ID3\x04",
    "webp without its name": b"RIFF\x00\x00\x00\x00WAVE",
    "half of a png": b"\x89PNG",
    "postscript": b"%!PS-Adobe",
}


@pytest.mark.parametrize(("kind", "content_type", "content"), KNOWN, ids=[each[1] for each in KNOWN])
def test_a_type_is_known_by_the_first_bytes(kind: MediaKind, content_type: str, content: bytes) -> None:
    sniffed = sniff(content[:ENOUGH])
    assert sniffed is not None
    assert (sniffed.kind, sniffed.content_type) == (kind, content_type)


@pytest.mark.parametrize("content", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_no_medium_is_refused(content: bytes) -> None:
    assert sniff(content) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [("html later", "web page"), ("svg", "SVG"), ("linux", "program"), ("heic", "not supported"), ("zip", "no JPEG")],
)
def test_a_refusal_says_what_the_file_seems_to_be(name: str, words: str) -> None:
    assert words in looks_like(UNKNOWN[name])


def test_a_brand_with_an_absurd_size_is_read_within_bounds() -> None:
    assert sniff(b"\xff\xff\xff\xff" + BRAND[4:]) is not None
    assert sniff(b"\x00\x00\x00\x00ftypXXXX") is None
