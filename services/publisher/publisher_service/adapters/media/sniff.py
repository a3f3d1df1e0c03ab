"""The type of a file by its first bytes. What is not on the list is refused: a web page, SVG, a program, an archive."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from channels.validation import MediaKind

ENOUGH: Final = 1024
"""So many first bytes tell the type of every file on the list."""

_BRANDS: Final[Mapping[bytes, str]] = {
    **dict.fromkeys(
        (b"isom", b"iso2", b"iso3", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V ", b"M4VH", b"M4VP"),
        "video/mp4",
    ),
    **dict.fromkeys((b"MSNV", b"dash", b"msdh", b"mmp4", b"f4v ", b"3gp4", b"3gp5", b"3gp6"), "video/mp4"),
    b"qt  ": "video/quicktime",
}
_BEGINNINGS: Final[Mapping[bytes, str]] = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"II*\x00": "image/tiff",
    b"MM\x00*": "image/tiff",
    b"%PDF-1.": "application/pdf",
    b"%PDF-2.": "application/pdf",
}
# The sizes that the header of a bitmap has: without one of them "BM" is the beginning of a text.
_BITMAP_HEADERS: Final = frozenset({12, 40, 52, 56, 64, 108, 124})
# Files of QuickTime from before there were brands.
_OLD_QUICKTIME: Final = frozenset({b"moov", b"mdat", b"wide"})
_PAGE: Final = re.compile(rb"\s*<(?:!doctype|html|head|body|script|\?xml|svg|!--)", re.IGNORECASE)
_PROGRAM: Final = (b"MZ", b"\x7fELF", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"#!", b"\x00asm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sniffed:
    kind: MediaKind
    content_type: str


def sniff(beginning: bytes) -> Sniffed | None:
    """Returns the type of a file that begins so; None if it is none that a post may have."""
    content_type = _type_of(beginning)
    return None if content_type is None else Sniffed(kind=_kind(content_type), content_type=content_type)


def looks_like(beginning: bytes) -> str:
    """Says what a file that was refused seems to be."""
    if _PAGE.match(beginning.removeprefix(b"\xef\xbb\xbf")):
        return "a web page or SVG"
    if beginning.startswith(_PROGRAM):
        return "a program"
    if beginning[4:8] == b"ftyp":
        return "a format of pictures, sound or video that is not supported"
    return "no JPEG, PNG, GIF, WebP, BMP, TIFF, MP4, MOV, WebM or PDF"


def _type_of(beginning: bytes) -> str | None:
    for magic, content_type in _BEGINNINGS.items():
        if beginning.startswith(magic):
            return content_type
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    if beginning[:2] == b"BM" and int.from_bytes(beginning[14:18], "little") in _BITMAP_HEADERS:
        return "image/bmp"
    if beginning[4:8] == b"ftyp":
        return _brand(beginning)
    if beginning[4:8] in _OLD_QUICKTIME:
        return "video/quicktime"
    if beginning[:4] == b"\x1a\x45\xdf\xa3" and b"\x42\x82\x84webm" in beginning[:64]:
        return "video/webm"
    return None


def _brand(beginning: bytes) -> str | None:
    """Returns the type for the brand of the file, or else for the first one that it is compatible with."""
    size = min(int.from_bytes(beginning[:4], "big"), len(beginning))
    compatible = (beginning[start : start + 4] for start in range(16, size - 3, 4))
    own = beginning[8:12]
    if own in _BRANDS:
        return _BRANDS[own]
    # A picture in HEIF or AVIF may be compatible with brands of videos.
    if own[:2] in {b"he", b"av", b"mi", b"ms"} or own[:3] in {b"M4A", b"M4B"}:
        return None
    return next((_BRANDS[each] for each in compatible if each in _BRANDS), None)


def _kind(content_type: str) -> MediaKind:
    if content_type == "application/pdf":
        return MediaKind.DOCUMENT
    return MediaKind(content_type.partition("/")[0].upper())
