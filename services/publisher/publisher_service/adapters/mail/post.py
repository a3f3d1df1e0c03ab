"""The way out for mails, as the settings describe it."""

from dataclasses import dataclass
from datetime import timedelta
from email.headerregistry import Address
from pathlib import Path

from publisher_service.adapters.mail.composing import Links
from publisher_service.adapters.mail.mail import FolderMailer, Mailer
from publisher_service.adapters.mail.mail_url import read_mail_url, read_sender
from publisher_service.adapters.mail.smtp import SmtpMailer
from servicekit.run.settings import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class MailPost:
    mailer: Mailer
    sender: Address
    links: Links
    timeout: timedelta


def mail_post(url: Secret, sender: str, links: Links, *, timeout: timedelta) -> MailPost | None:
    """Returns None if e-mail is off."""
    place, address = read_mail_url(url), read_sender(sender)
    if place is None:
        return None
    mailer: Mailer = (
        FolderMailer(place) if isinstance(place, Path) else SmtpMailer(place, helo=address.domain, timeout=timeout)
    )
    return MailPost(mailer=mailer, sender=address, links=links, timeout=timeout)
