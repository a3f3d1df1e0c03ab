"""A mail has the same bytes in every attempt, and says what it should to any mail program."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.validation import MediaKind
from publisher_service.adapters.providers.attachments import Attachment
from publisher_service.adapters.providers.mail_message import Letter, MailMessage, Unwritable
from publisher_service.domain.media import MediaFacts

LETTER = Letter(
    key="job-1",
    from_address="ada@example.com",
    from_name="Ada",
    to_address="grace@example.org",
    subject="Hello",
    text="Dear Grace",
    time=datetime(2026, 3, 2, 9, 30, tzinfo=UTC),
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=400)
LINES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=255)


class File:
    def __init__(self, data: bytes, step: int) -> None:
        self._data, self._step = data, step
        self.facts = MediaFacts(
            kind=MediaKind.DOCUMENT, content_type="application/pdf", size=len(data), sha256="not looked at"
        )

    async def pieces(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._data), self._step):
            yield self._data[start : start + self._step]


async def wire(letter: Letter, *files: File) -> bytes:
    attachments = [Attachment(name=f"a-{n}.pdf", file=file) for n, file in enumerate(files)]
    return b"".join([piece async for piece in MailMessage(letter, attachments).pieces()])


def received(data: bytes) -> EmailMessage:
    """Returns the mail as a server keeps it: without the doubled dots."""
    lines = data.split(b"\r\n")
    assert b"." not in lines, "a dot on a line of its own ends the mail"
    return message_from_bytes(b"\r\n".join(line.removeprefix(b".") for line in lines), policy=policy.default)


async def test_headers_are_those_of_the_letter() -> None:
    mail = received(await wire(replace(LETTER, list_unsubscribe="https://example.com/out?a=grace@example.org")))
    assert {name: str(mail[name]) for name in ("From", "To", "Subject", "Message-ID", "List-Unsubscribe")} == {
        "From": "Ada <ada@example.com>",
        "To": "grace@example.org",
        "Subject": "Hello",
        "Message-ID": "<job-1@example.com>",
        "List-Unsubscribe": "<https://example.com/out?a=grace@example.org>",
    }
    assert str(mail["Date"]) == "Mon, 02 Mar 2026 09:30:00 +0000"
    assert (mail.get_content_type(), mail.get_content_charset()) == ("text/plain", "utf-8")


@pytest.mark.parametrize("local", ["=?utf-8?q?a?=", "=?utf-8?q?a?=.b", "a b", "a@b"])
async def test_an_address_that_cannot_be_written_is_said_so(local: str) -> None:
    for files in ((), (File(b"%PDF", 4),)):
        with pytest.raises(Unwritable):
            await wire(replace(LETTER, to_address=f"{local}@example.org"), *files)


async def test_a_long_address_to_unsubscribe_is_not_encoded() -> None:
    url = f"https://example.com/out?{'a' * 270}@"
    for files in ((), (File(b"%PDF", 4),)):
        data = await wire(replace(LETTER, list_unsubscribe=url), *files)
        assert f"\r\nList-Unsubscribe: <{url}>\r\n".encode() in data


async def test_a_mail_is_the_same_in_every_attempt() -> None:
    file = File(b"%PDF" * 100, 7)
    assert await wire(LETTER, file) == await wire(LETTER, File(b"%PDF" * 100, 1000))


@pytest.mark.parametrize("key", ["job.1", "job 1\r\n", "ü", "x" * 300, ""])
def test_a_key_that_is_no_atom_becomes_a_digest(key: str) -> None:
    name = replace(LETTER, key=key).message_id
    assert name.endswith("@example.com>")
    assert len(name) == len("<@example.com>") + 64


@settings(max_examples=150)
@given(text=TEXTS, subject=LINES, name=LINES)
async def test_any_text_subject_and_name_arrive(text: str, subject: str, name: str) -> None:
    letter = replace(LETTER, text=text, subject=subject, from_name=name.strip())
    data = await wire(letter)
    assert data.endswith(b"\r\n")
    assert max(map(len, data.split(b"\r\n"))) <= 998
    assert data.count(b"\n") == data.count(b"\r\n")
    mail = received(data)
    assert mail.get_content().replace("\r\n", "\n").rstrip("\n") == text.rstrip("\n")
    assert set(mail.keys()) <= {
        "From", "To", "Subject", "Message-ID", "Date", "Content-Type", "Content-Transfer-Encoding", "MIME-Version"
    }  # fmt: skip
    assert [each.addr_spec for each in mail["To"].addresses] == ["grace@example.org"]
    assert " ".join(str(mail["Subject"]).split()) == " ".join(subject.split())


@settings(max_examples=60)
@given(data=st.lists(st.binary(max_size=300), max_size=3), step=st.integers(1, 120), text=TEXTS)
async def test_any_attachment_arrives_and_the_size_is_known(data: list[bytes], step: int, text: str) -> None:
    letter, files = replace(LETTER, text=text), [File(each, step) for each in data]
    sent = await wire(letter, *files)
    mail = received(sent)
    assert [part.get_content() for part in mail.iter_attachments()] == data
    attachments = [Attachment(name="a.pdf", file=file) for file in files]
    plain = b"\r\n".join(line.removeprefix(b".") for line in sent.split(b"\r\n"))
    assert abs(MailMessage(letter, attachments).size - len(plain)) <= 2 * len(data)
