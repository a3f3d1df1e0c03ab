"""Small files of every type: pictures by Pillow, films by hand."""

import struct
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

FORMATS = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
}


def picture(content_type: str, width: int = 40, height: int = 30, **options: Any) -> bytes:
    return encoded(Image.new("RGB", (width, height), "red"), content_type, **options)


def turned(content_type: str, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return picture(content_type, exif=exif)


def moving(content_type: str, frames: int = 3) -> bytes:
    first, *others = (Image.new("RGB", (40, 30), (shade * 80, 0, 0)) for shade in range(frames))
    return encoded(first, content_type, save_all=True, append_images=others, duration=100)


def encoded(image: Image.Image, content_type: str, **options: Any) -> bytes:
    written = BytesIO()
    image.save(written, FORMATS[content_type], **options)
    return written.getvalue()


def box(name: bytes, *inside: bytes, size: int | None = None, is_long: bool = False) -> bytes:
    content = b"".join(inside)
    length = len(content) + (16 if is_long else 8) if size is None else size
    return (struct.pack(">I4sQ", 1, name, length) if is_long else struct.pack(">I4s", length, name)) + content


def movie_header(duration: timedelta, *, version: int = 0, scale: int = 1000, ticks: int | None = None) -> bytes:
    count = int(duration.total_seconds() * scale) if ticks is None else ticks
    times = struct.pack(">QQIQ" if version else ">IIII", 0, 0, scale, count)
    return box(b"mvhd", bytes([version, 0, 0, 0]), times, bytes(80))


ONE, MINUS = struct.pack(">i", 1 << 16), struct.pack(">i", -1 << 16)
UPRIGHT = ONE + bytes(12) + ONE + bytes(12) + struct.pack(">i", 1 << 30)
QUARTER_TURN = bytes(4) + ONE + bytes(4) + MINUS + bytes(16) + struct.pack(">i", 1 << 30)
UPSIDE_DOWN = MINUS + bytes(12) + MINUS + bytes(12) + struct.pack(">i", 1 << 30)


def track(
    width: int = 640, height: int = 360, *, matrix: bytes = UPRIGHT, version: int = 0, handler: bytes = b"vide"
) -> bytes:
    times = bytes(32 if version else 20)
    measures = struct.pack(">II", width << 16, height << 16)
    header = box(b"tkhd", bytes([version, 0, 0, 0]), times, bytes(16), matrix, measures)
    return box(b"trak", header, box(b"mdia", box(b"hdlr", bytes(8), handler, bytes(12))))


BRAND = box(b"ftyp", b"isom", bytes(4), b"isomiso2avc1mp41")
DATA = box(b"mdat", b"\x00" * 3000)
SECONDS = timedelta(seconds=12.5)
MOVIE = box(b"moov", movie_header(SECONDS), track())
FILM = BRAND + MOVIE + DATA
PDF = b"%PDF-1.7\n1 0 obj\n<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n"
WEBM = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm" + bytes(
    99
)


def on_disk(folder: Path, content: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content)
    return path
