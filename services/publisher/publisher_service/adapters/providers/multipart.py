"""Bodies of forms with files (RFC 7578), which are streamed."""

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

from publisher_service.adapters.providers.media_source import MediaFile
from servicekit.record import record

_UNSAFE: Final = re.compile(r'[\r\n"]')
_ENDINGS: Final = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "application/pdf": "pdf",
}


@record(frozen=True, slots=True, kw_only=True)
class FormFile:
    name: str
    file: MediaFile
    # Empty: that of the field.
    filename: str = ""


class Form:
    """Fields and files, in their order. Its pieces may be asked for more than once."""

    def __init__(self, fields: Sequence[tuple[str, str]], files: Sequence[FormFile] = ()) -> None:
        """Raises ValueError for a name that would begin another header."""
        names = [name for name, _ in fields] + [f"{each.name}{each.filename}" for each in files]
        if any(map(_UNSAFE.search, names)):
            raise ValueError("the name of a field or file has a line break or a quote")
        self._boundary = _boundary(fields, files)
        self._fields = "".join(self._field(name, value) for name, value in fields).encode()
        self._files = [(self._head(each).encode(), each.file) for each in files]
        self._end = f"--{self._boundary}--\r\n".encode()

    @property
    def content_type(self) -> str:
        return f"multipart/form-data; boundary={self._boundary}"

    @property
    def size(self) -> int:
        files = sum(len(head) + file.facts.size + 2 for head, file in self._files)
        return len(self._fields) + files + len(self._end)

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self._fields
        for head, file in self._files:
            yield head
            async for piece in file.pieces():
                yield piece
            yield b"\r\n"
        yield self._end

    def _field(self, name: str, value: str) -> str:
        return f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'

    def _head(self, each: FormFile) -> str:
        kind = each.file.facts.content_type
        filename = each.filename or f"{each.name}.{_ENDINGS.get(kind, 'bin')}"
        disposition = f'form-data; name="{each.name}"; filename="{filename}"'
        return f"--{self._boundary}\r\nContent-Disposition: {disposition}\r\nContent-Type: {kind}\r\n\r\n"


def _boundary(fields: Sequence[tuple[str, str]], files: Sequence[FormFile]) -> str:
    """Returns a boundary that is in none of the parts: it depends on all that is in them."""
    digest = hashlib.sha256()
    for part in (*(f"{name}={value}" for name, value in fields), *(each.file.facts.sha256 for each in files)):
        digest.update(hashlib.sha256(part.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()  # 64 characters; 70 are allowed
