"""An e-mail as bytes, the same in every attempt: text in UTF-8, and attachments that are encoded as they are sent."""

import base64
import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

from publisher_service.adapters.mail_policy import POLICY
from publisher_service.adapters.providers.attachments import Attachment
from publisher_service.adapters.providers.mail_addresses import domain_of
from servicekit.record import record

_ATOM: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_LEADING_DOT: Final = re.compile(rb"(?m)^\.")
# 57 bytes are a line of 76 characters.
_BYTES_PER_LINE: Final = 57
_LINE: Final = 76
_END_OF_LINE: Final = b"\r\n"


@record(frozen=True, slots=True, kw_only=True)
class Letter:
    """The content of a mail, and its recipient. Nothing of it but the text has a line break."""

    key: str
    from_address: str
    from_name: str
    to_address: str
    subject: str
    text: str
    time: datetime | None
    list_unsubscribe: str = ""

    @property
    def message_id(self) -> str:
        """The name of the mail, made of its key: a receiver can tell a copy by it."""
        name = self.key if _ATOM.fullmatch(self.key) else hashlib.sha256(self.key.encode()).hexdigest()
        return f"<{name}@{domain_of(self.from_address)}>"


class Unwritable(Exception):
    """A letter has an address or a text that no mail can have."""


class MailMessage:
    """`size` is that of the mail before its dots are doubled, as SMTP counts it."""

    def __init__(self, letter: Letter, attachments: Sequence[Attachment]) -> None:
        """Raises Unwritable."""
        try:
            self._parts = list(_parts(letter, attachments))
        except (MessageError, ValueError) as error:
            raise Unwritable(str(error)) from None
        self.size = sum(
            len(part) if isinstance(part, bytes) else _encoded_size(part.file.facts.size) for part in self._parts
        )

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the mail as it goes over the wire, with its dots doubled, without the final one."""
        for part in self._parts:
            if isinstance(part, bytes):
                yield _LEADING_DOT.sub(b"..", part)
            else:
                async for piece in _encoded(part):
                    yield piece


def _parts(letter: Letter, attachments: Sequence[Attachment]) -> Iterator[bytes | Attachment]:
    message = EmailMessage(policy=POLICY)
    message.set_content(letter.text, subtype="plain", charset="utf-8", cte="quoted-printable")
    if not attachments:
        _add_headers(message, letter)
        yield message.as_bytes()
        return
    # "=_" is in no line of quoted-printable or base64 text.
    boundary = f"=_{hashlib.sha256(letter.key.encode()).hexdigest()[:32]}"
    outer = EmailMessage(policy=POLICY)
    _add_headers(outer, letter)
    del message["MIME-Version"]
    kind = f'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="{boundary}"\r\n\r\n'.encode()
    opening, closing = f"--{boundary}\r\n".encode(), f"--{boundary}--\r\n".encode()
    yield outer.as_bytes().removesuffix(_END_OF_LINE) + kind + opening + message.as_bytes()
    for attachment in attachments:
        yield _END_OF_LINE + opening + _attachment_head(attachment)
        yield attachment
    yield _END_OF_LINE + closing


def _add_headers(message: EmailMessage, letter: Letter) -> None:
    message["From"] = Address(display_name=letter.from_name, addr_spec=letter.from_address)
    message["To"] = Address(addr_spec=letter.to_address)
    message["Subject"] = letter.subject
    message["Message-ID"] = letter.message_id
    if letter.time is not None:
        message["Date"] = format_datetime(letter.time)
    if letter.list_unsubscribe:
        message["List-Unsubscribe"] = f"<{letter.list_unsubscribe}>"


def _attachment_head(attachment: Attachment) -> bytes:
    """Returns the headers of a part. The name is plain ASCII, and the type is of our own list."""
    lines = (
        f"Content-Type: {attachment.file.facts.content_type}",
        "Content-Transfer-Encoding: base64",
        f'Content-Disposition: attachment; filename="{attachment.name}"',
        "",
        "",
    )
    return "\r\n".join(lines).encode("ascii")


async def _encoded(attachment: Attachment) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in attachment.file.pieces():
        data = rest + piece
        whole = len(data) - len(data) % _BYTES_PER_LINE
        rest = data[whole:]
        if whole:
            yield _lines(data[:whole])
    if rest:
        yield _lines(rest)


def _lines(data: bytes) -> bytes:
    text = base64.b64encode(data)
    return b"".join(text[start : start + _LINE] + _END_OF_LINE for start in range(0, len(text), _LINE))


def _encoded_size(size: int) -> int:
    return 4 * -(-size // 3) + len(_END_OF_LINE) * -(-size // _BYTES_PER_LINE)
