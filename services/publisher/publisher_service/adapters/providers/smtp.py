"""Mail through the tenant's own mail server. It shows nothing of what it has taken: a lost reply is for a person."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Final

from channels.texts import with_link
from publisher_service.adapters.media.refusals import MediaRefused, MediaUnavailable
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.refusals import AddressRefused, Unreachable
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, Proof, ProviderDown
from publisher_service.adapters.providers.attachments import checked, opened
from publisher_service.adapters.providers.mail_addresses import domain_of, is_address, is_one_line
from publisher_service.adapters.providers.mail_message import Letter, MailMessage, Unwritable
from publisher_service.adapters.providers.mail_rules import MOST_ATTACHED, SMTP_RULES
from publisher_service.adapters.providers.media_source import MediaSource
from publisher_service.adapters.providers.smtp_replies import Step, classify_reply_at
from publisher_service.adapters.providers.smtp_session import SmtpFailed, SmtpLost, SmtpSession, hidden_of
from publisher_service.adapters.providers.smtp_settings import Security, SmtpSettings, read_settings
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    Finding,
    Level,
    NoProof,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.preparation import Delayed, Ready, Unfit
from publisher_service.domain.provider_error import ErrorClass, ProviderError, outcome_of
from servicekit.faults import InvalidField
from servicekit.record import record

# RFC 5321, 4.5.3.2 would have us wait ten minutes for the reply to the final dot: a mail server may look at the mail
# while the client waits. No lease is that long, but a request here gets more time than elsewhere.
_PATIENCE: Final = 6
# The share of that time in which the mail has to be handed over; the rest is for the reply.
_HANDED_OVER: Final = 0.6
_REFUSED_FOR_GOOD: Final = frozenset(
    {
        ErrorClass.AUTH_REVOKED,
        ErrorClass.AUTH_USER_ACTION,
        ErrorClass.CONFIG,
        ErrorClass.PERMANENT,
        ErrorClass.TARGET_GONE,
    }
)


@record(frozen=True, slots=True, kw_only=True)
class _Login:
    settings: SmtpSettings
    from_address: str
    password: str

    @property
    def username(self) -> str:
        return self.settings.username or self.from_address


class SmtpAdapter:
    name: Final = "smtp"
    rules: Final = SMTP_RULES
    proof: Final = Proof.BLIND

    def __init__(self, outside: Outside, limits: Limits, *, media: MediaSource) -> None:
        # No look can prove anything, so a person is asked at once.
        self.limits: Final = replace(
            limits, request_timeout=_PATIENCE * limits.request_timeout, unknown_deadline=timedelta(0)
        )
        self._outside = outside
        self._media = media

    def check_settings(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the settings, normalised. Raises InvalidField."""
        return read_settings(settings, self._outside).as_mapping()

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        """Logs in, and asks whether mail may be sent from the address. Raises CredentialsRefused or ProviderDown."""
        try:
            login = self._login(external_account_id, credentials.access_token, settings)
            async with AsyncExitStack() as stack:
                deadline = self._deadline(1)
                async with asyncio.timeout_at(deadline):
                    session = await self._session(stack, organization_id, login, deadline)
                    await session.announce(login.from_address)
                await session.leave(deadline)
        except InvalidField as error:
            raise CredentialsRefused(error.message) from None
        except AddressRefused as refused:
            raise CredentialsRefused(refused.message) from None
        except (Unreachable, SmtpLost) as lost:
            raise ProviderDown(str(lost)) from None
        except TimeoutError:
            raise ProviderDown("the mail server did not answer in time") from None
        except SmtpFailed as failed:
            kind = CredentialsRefused if failed.error.kind in _REFUSED_FOR_GOOD else ProviderDown
            raise kind(failed.error.message) from None

    async def prepare(self, post: Post) -> Ready | Unfit | Delayed:
        """Returns whether the attachments can be sent; there is nothing else to prepare."""
        if not post.media:
            return Ready(handle="text")
        return await checked(self._media, post, most_bytes=MOST_ATTACHED, handle="attachments")

    check = prepare

    async def send(self, post: Post) -> Outcome:
        """Sends one mail. Until the final dot is written, the server has to forget what it was given."""
        try:
            login = self._login(post.external_account_id, post.access_token, post.settings)
        except InvalidField as error:
            return outcome_of(ProviderError(kind=ErrorClass.CONFIG, reason=error.reason, message=error.message))
        if not is_address(post.destination):
            return Rejected(reason="ADDRESS_MALFORMED", message="the destination is no e-mail address in ASCII")
        if not (post.title and is_one_line(post.title)):
            return Rejected(reason="TITLE_MALFORMED", message="the title must be one line, and is the subject")
        letter = _letter(post, login)
        deadline = self._deadline(1)
        async with AsyncExitStack() as stack:
            try:
                until = self._deadline(_HANDED_OVER)
                async with asyncio.timeout_at(until):
                    session = await self._hand_over(stack, post, login, letter, until)
            except Unwritable as error:
                return Rejected(reason="MAIL_UNWRITABLE", message=f"the mail cannot be written: {error}")
            except (MediaRefused, MediaUnavailable, AddressRefused, Unreachable, SmtpLost, SmtpFailed) as error:
                return _nothing_sent(error)
            except TimeoutError:
                return NotSent(reason="TOO_SLOW", message="the mail could not be handed over in time")
            return await _finish(session, letter, deadline)

    async def look(self, post: Post) -> Finding:
        return NoProof(message="a mail server shows nothing of what it has taken")

    def _login(self, external_account_id: str, password: str, settings: Mapping[str, str]) -> _Login:
        """Raises InvalidField."""
        read = read_settings(settings, self._outside)
        address = read.from_address or external_account_id
        if not is_address(external_account_id) or address.lower() != external_account_id.lower():
            raise InvalidField("external_account_id", "must be the e-mail address from which mail is sent")
        return _Login(settings=read, from_address=address, password=password)

    async def _hand_over(
        self, stack: AsyncExitStack, post: Post, login: _Login, letter: Letter, until: float
    ) -> SmtpSession:
        """Returns a session in which all of the mail is written, but for the final dot."""
        attachments = await stack.enter_async_context(opened(self._media, post, most_bytes=MOST_ATTACHED))
        message = MailMessage(letter, attachments)
        session = await self._session(stack, post.organization_id, login, until)
        await session.address(letter.from_address, letter.to_address, size=message.size)
        async for piece in message.pieces():
            await session.write(piece)
        return session

    async def _session(self, stack: AsyncExitStack, organization_id: str, login: _Login, until: float) -> SmtpSession:
        """Returns a session that is logged in, and ends with the stack."""
        settings, name = login.settings, domain_of(login.from_address)
        left = timedelta(seconds=max(0.0, until - asyncio.get_running_loop().time()))
        reader, writer = await self._outside.connect(
            organization_id,
            settings.host,
            settings.port,
            tls=self._outside.tls if settings.security is Security.TLS else None,
            timeout=left / 2,
        )
        session = SmtpSession(reader, writer, hidden=hidden_of(login.username, login.password))
        stack.callback(session.abort)
        await session.greet(name, first=True)
        if settings.security is Security.STARTTLS:
            await session.start_tls(self._outside.tls, settings.host)
            await session.greet(name, first=False)
        await session.log_in(login.username, login.password)
        return session

    def _deadline(self, share: float) -> float:
        return asyncio.get_running_loop().time() + share * self.limits.request_timeout.total_seconds()


def _letter(post: Post, login: _Login) -> Letter:
    return Letter(
        key=post.idempotency_key,
        from_address=login.from_address,
        from_name=login.settings.from_name,
        to_address=post.destination,
        subject=post.title,
        text=with_link(post.text, post.link),
        time=post.schedule_time,
        list_unsubscribe=login.settings.unsubscribe_for(post.destination),
    )


async def _finish(session: SmtpSession, letter: Letter, deadline: float) -> Outcome:
    """Writes the final dot. From then on only a reply says whether the server has the mail."""
    try:
        async with asyncio.timeout_at(deadline):
            reply = await session.end()
    except SmtpLost as lost:
        return Ambiguous(reason="CONNECTION_LOST", message=f"no reply to the whole mail: {lost}")
    except TimeoutError:
        return Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="no reply to the whole mail in time")
    await session.leave(deadline)
    error = classify_reply_at(Step.END, reply)
    if error.kind is ErrorClass.OK:
        return Accepted(external_id=letter.message_id, external_url="")
    return _outcome(error)


def _nothing_sent(
    error: MediaRefused | MediaUnavailable | AddressRefused | Unreachable | SmtpLost | SmtpFailed,
) -> Outcome:
    match error:
        case SmtpFailed(error=failure):
            return _outcome(failure)
        case MediaRefused():
            return Rejected(reason=error.reason, message=error.message)
        case AddressRefused() | Unreachable():
            return NotSent(reason=str(error.reason), message=error.message)
        case MediaUnavailable():
            return NotSent(reason="MEDIA_UNAVAILABLE", message=str(error))
        case _:
            return NotSent(reason="CONNECTION_LOST", message=str(error))


def _outcome(error: ProviderError) -> Outcome:
    """Returns what a definite reply means. One about the whole server costs the mail no attempt."""
    if error.kind is ErrorClass.RETRY_LATER and error.wait is not None:
        return RateLimited(message=error.message, retry_after=error.wait, level=Level.ACCOUNT)
    return outcome_of(error)
