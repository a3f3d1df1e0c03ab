"""Hands mails to an SMTP server: one connection for each, and one recipient, so that every answer is about one mail."""

import asyncio
import base64
import ssl
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from publisher_service.adapters.mail.mail import Mail
from publisher_service.adapters.mail.mail_url import SmtpPlace
from publisher_service.domain.delivery import Accepted, NotAccepted, Result

if TYPE_CHECKING:
    import aiosmtplib

_QUIT_SECONDS: Final = 2.0
_SHORTEST_SECRET: Final = 4


class SmtpMailer:
    def __init__(self, place: SmtpPlace, *, helo: str, timeout: timedelta, tls: ssl.SSLContext | None = None) -> None:
        """`helo` is the host name with which we introduce ourselves."""
        self._place = place
        self._helo = helo
        self._timeout = timeout.total_seconds()
        self._tls = tls

    async def send(self, mail: Mail) -> Result:
        """Makes one attempt. A refusal for good (5yz) of the recipient or the mail is final; all others may pass."""
        import aiosmtplib  # a process that sends no mail does without: 1 MB

        try:
            async with asyncio.timeout(self._timeout):
                return await self._exchange(mail)
        except (aiosmtplib.SMTPTimeoutError, TimeoutError):
            return NotAccepted(reason="TIMEOUT", message="the mail server did not answer in time")
        except aiosmtplib.SMTPAuthenticationError as refused:
            # Not a word of the answer, which may repeat what we said.
            return NotAccepted(reason="SMTP_LOGIN", message=f"the mail server refuses our login ({refused.code})")
        except aiosmtplib.SMTPRecipientsRefused as refused:
            (first, *_) = refused.recipients
            return self._refused(first.code, first.message, is_final=True)
        except aiosmtplib.SMTPDataError as refused:
            return self._refused(refused.code, refused.message, is_final=True)
        except aiosmtplib.SMTPResponseException as refused:
            # Of us, not of this mail: 5yz here is a mistake of the set-up, which somebody mends.
            return self._refused(refused.code, refused.message, is_final=False)
        except aiosmtplib.SMTPNotSupported:
            return NotAccepted(reason="SMTP_UNSUPPORTED", message="the mail server offers no login that we know")
        except aiosmtplib.SMTPConnectError:
            return NotAccepted(reason="CONNECT_FAILED", message="the mail server cannot be reached")
        except (aiosmtplib.SMTPException, OSError) as error:
            return NotAccepted(reason="CONNECTION_LOST", message=f"the connection broke ({type(error).__name__})")

    async def _exchange(self, mail: Mail) -> Result:
        client = self._client()
        try:
            await client.connect()
            if self._place.start_tls:
                await client.ehlo()
                if not client.supports_extension("starttls"):
                    return NotAccepted(reason="SMTP_NO_TLS", message="the mail server offers no STARTTLS")
                await client.starttls()
            if self._place.user:
                await client.login(self._place.user, self._place.password.reveal())
            await client.sendmail(mail.sender, [mail.recipient], mail.content)
            await _quit(client)
        finally:
            client.close()
        return Accepted()

    def _client(self) -> "aiosmtplib.SMTP":
        import aiosmtplib

        place = self._place
        return aiosmtplib.SMTP(
            hostname=place.host,
            port=place.port,
            use_tls=place.implicit_tls,
            # Never if it is offered: what is not required, an attacker on the way takes away.
            start_tls=False,
            tls_context=self._tls,
            local_hostname=self._helo,
            timeout=self._timeout,
        )

    def _refused(self, code: int, text: str, *, is_final: bool) -> NotAccepted:
        shown = f"the mail server said {code} {self._without_secrets(text)}"
        return NotAccepted(reason=f"SMTP_{code}", message=shown, is_final=is_final and code >= 500)

    def _without_secrets(self, text: str) -> str:
        """Returns the server's words without the password, in any form in which we have said it."""
        user, password = self._place.user, self._place.password.reveal()
        said = [password, _encoded(password), _encoded(f"\0{user}\0{password}")]
        for secret in said if len(password) >= _SHORTEST_SECRET else ():
            text = text.replace(secret, "***")
        return text


async def _quit(client: "aiosmtplib.SMTP") -> None:
    """Ends the session. The server has the mail by now, so no failure of this counts."""
    import aiosmtplib

    with suppress(aiosmtplib.SMTPException, OSError, TimeoutError):
        await client.quit(timeout=_QUIT_SECONDS)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
