"""Forms with files are written so that another reader of forms reads the same."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.validation import MediaKind
from publisher_service.adapters.providers.multipart import Form, FormFile
from publisher_service.domain.media import MediaFacts


@dataclass
class Bytes:
    """A file in memory, which comes in small pieces."""

    data: bytes

    @property
    def facts(self) -> MediaFacts:
        digest = hashlib.sha256(self.data).hexdigest()
        return MediaFacts(kind=MediaKind.IMAGE, content_type="image/jpeg", size=len(self.data), sha256=digest)

    async def pieces(self) -> AsyncIterator[bytes]:
        for first in range(0, len(self.data), 3):
            yield self.data[first : first + 3]


async def read(form: Form) -> bytes:
    return b"".join([piece async for piece in form.pieces()])


async def test_a_form_is_read_as_it_was_meant() -> None:
    data, text = bytes(range(256)), "Zoë\r\n--\r\n😀"
    form = Form([("chat_id", "1"), ("caption", text)], [FormFile(name="file0", file=Bytes(data))])
    body = await read(form)
    assert len(body) == form.size
    assert await read(form) == body, "a form may be sent twice"
    head = f"Content-Type: {form.content_type}\r\n\r\n".encode()
    parts: list[Message] = BytesParser().parsebytes(head + body).get_payload()  # type: ignore[assignment]
    names = [part.get_param("name", header="content-disposition") for part in parts]
    assert names == ["chat_id", "caption", "file0"]
    assert [part.get_filename() for part in parts] == [None, None, "file0.jpg"]
    assert parts[1].get_payload(decode=True) == text.encode()
    assert parts[2].get_payload(decode=True) == data


NAMES = st.text(st.characters(exclude_characters='\r\n"', codec="utf-8"), max_size=5)


@given(st.lists(st.tuples(NAMES, st.text())), st.lists(st.binary(), max_size=3))
def test_no_part_holds_the_boundary(fields: list[tuple[str, str]], files: list[bytes]) -> None:
    form = Form(fields, [FormFile(name=f"file{number}", file=Bytes(data)) for number, data in enumerate(files)])
    boundary = form.content_type.rpartition("=")[2]
    assert len(boundary) <= 70
    assert not any(boundary in value for _, value in fields)
    assert not any(boundary.encode() in data for data in files)


@pytest.mark.parametrize("name", ['a"; filename="b', "a\r\nContent-Type: b"])
def test_a_name_that_would_begin_another_header_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="line break or a quote"):
        Form([(name, "x")])
    with pytest.raises(ValueError, match="line break or a quote"):
        Form([], [FormFile(name="file", filename=name, file=Bytes(b"x"))])


async def test_a_file_may_have_a_name_of_its_own() -> None:
    body = await read(Form([], [FormFile(name="attachments", filename="plan.pdf", file=Bytes(b"x"))]))
    assert b'name="attachments"; filename="plan.pdf"' in body
