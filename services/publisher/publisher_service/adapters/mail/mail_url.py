"""The setting that says how mail leaves: by which server, or into a folder."""

from dataclasses import dataclass, field
from email.headerregistry import Address
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import SplitResult, unquote, urlsplit

from publisher_service.domain.recipients import is_email
from servicekit.run.settings import Secret

_FOLDER: Final = "file"
_PORTS: Final = {"smtp": 25, "smtps": 465, "smtp+starttls": 587}
_FORMS: Final = "smtp://user:password@host:port, smtps://..., smtp+starttls://... or file:///folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpPlace:
    host: str
    port: int
    # Encrypted from the first byte, or from STARTTLS on, which is then required.
    implicit_tls: bool = False
    start_tls: bool = False
    user: str = ""
    password: Secret = field(default=Secret(""))


def read_mail_url(url: Secret) -> SmtpPlace | Path | None:
    """Returns where mail goes; None if e-mail is off. Raises ValueError, without a word of the URL."""
    if not url.reveal():
        return None
    parts = _split(url.reveal())
    if parts.scheme == _FOLDER:
        folder = Path(unquote(parts.path))
        if parts.netloc or not folder.is_absolute():
            raise ValueError("is not file:///folder, with an absolute path")
        return folder
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(f"is not {_FORMS}")
    if bool(parts.username) != bool(parts.password):
        raise ValueError("has a user without a password, or a password without a user")
    return SmtpPlace(
        host=parts.hostname,
        port=parts.port or _PORTS[parts.scheme],
        implicit_tls=parts.scheme == "smtps",
        start_tls=parts.scheme == "smtp+starttls",
        user=unquote(parts.username or ""),
        password=Secret(unquote(parts.password or "")),
    )


def read_sender(text: str) -> Address:
    """Reads `Name <address>`. Raises ValueError."""
    name, email = parseaddr(text)
    if not is_email(email) or not text.isprintable():
        raise ValueError("is not NAME <ADDRESS>, such as PostFlow <postflow@example.com>")
    return Address(display_name=name, addr_spec=email)


def check_mail_url(value: Secret) -> None:
    read_mail_url(value)


def check_sender(value: str) -> None:
    read_sender(value)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        raise ValueError(f"is not {_FORMS}") from None
    if "@" in parts.path + parts.query + parts.fragment:
        raise ValueError("has a user or password in which / ? # must be percent-encoded")
    return parts


MailUrl = Annotated[Secret, check_mail_url]
Sender = Annotated[str, check_sender]
