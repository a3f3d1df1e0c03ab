"""A session with a mail server over streams that are connected already: commands, replies, TLS.

It is written here, not by aiosmtplib, which has the whole mail in memory three times, drops a reply that comes while
the mail is being handed over, and does not say whether the final dot was written: that is all that matters here.
"""

import asyncio
import base64
import re
import ssl
from collections.abc import Sequence
from typing import Final

from publisher_service.adapters.outside.network import abort
from publisher_service.adapters.providers.smtp_replies import Reply, Step, classify_reply_at
from publisher_service.domain.provider_error import ErrorClass, ProviderError

_LONGEST_LINE: Final = 4096
_MOST_LINES: Final = 100
_LONGEST_TEXT: Final = 2000
_PATIENCE_AT_END: Final = 0.5
_REPLY: Final = re.compile(rb"([2-5][0-9][0-9])(?:([ -])([^\r\n]*))?\r?\n")
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f]")


class SmtpLost(Exception):
    """The connection broke, or the server said something that is no reply; `args[0]` says which."""


class SmtpFailed(Exception):
    """The server refused a step, or does not offer what is needed."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__(error.message)
        self.error = error


class SmtpSession:
    """`hidden` are secrets that a reply may repeat: they are replaced in its text."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, hidden: Sequence[str]) -> None:
        self._reader = reader
        self._writer = writer
        # A writer that nobody refers to closes its transport, which TLS goes on using after STARTTLS.
        self._plain_writer = writer
        self._hidden = hidden
        # What the server offers, in upper case, with its parameters.
        self._offers: dict[str, str] = {}

    async def greet(self, name: str, *, first: bool) -> None:
        """Introduces the caller, and notes what the server offers; before the `first` time the server greets.

        Raises SmtpFailed or SmtpLost.
        """
        if first:
            _require(Step.HELLO, await self._reply(), 220)
        reply = await self.ask(Step.HELLO, f"EHLO {name}", 250, keep_lines=True)
        lines = [line.partition(" ") for line in reply.text.split("\n")[1:]]
        self._offers = {verb.upper(): parameters.upper() for verb, _, parameters in lines}

    async def start_tls(self, tls: ssl.SSLContext, host: str) -> None:
        """Begins TLS with the server, which has to prove that it is the host.

        What came in plain text before is thrown away with its reader: somebody on the way may have written it.
        Raises SmtpFailed or SmtpLost.
        """
        if "STARTTLS" not in self._offers:
            raise SmtpFailed(_unable("NO_STARTTLS", "the mail server does not offer STARTTLS"))
        await self.ask(Step.HELLO, "STARTTLS", 220)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_LONGEST_LINE)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport = await loop.start_tls(self._writer.transport, protocol, tls, server_hostname=host)
        except ssl.SSLCertVerificationError:
            raise SmtpLost(f"{host} has no valid certificate") from None
        except OSError as error:
            raise SmtpLost(f"TLS with {host} failed: {type(error).__name__}") from None
        if transport is None:
            raise SmtpLost(f"{host} closed the connection")
        protocol.connection_made(transport)
        self._reader, self._writer = reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def log_in(self, username: str, password: str) -> None:
        """Raises SmtpFailed or SmtpLost."""
        mechanisms = self._offers.get("AUTH", "").split()
        if "PLAIN" in mechanisms:
            await self.ask(Step.LOGIN, f"AUTH PLAIN {_encoded(f'{chr(0)}{username}{chr(0)}{password}')}", 235)
        elif "LOGIN" in mechanisms:
            await self.ask(Step.LOGIN, "AUTH LOGIN", 334)
            await self.ask(Step.LOGIN, _encoded(username), 334)
            await self.ask(Step.LOGIN, _encoded(password), 235)
        else:
            raise SmtpFailed(_unable("NO_AUTH", "the mail server offers neither AUTH PLAIN nor AUTH LOGIN"))

    async def address(self, sender: str, recipient: str, *, size: int) -> None:
        """Names sender and recipient of a mail of that size, and announces it. Raises SmtpFailed or SmtpLost."""
        await self.announce(sender, size=size)
        await self.ask(Step.RECIPIENT, f"RCPT TO:<{recipient}>", 250, 251)
        await self.ask(Step.DATA, "DATA", 354)

    async def announce(self, sender: str, *, size: int | None = None) -> None:
        extra = f" SIZE={size}" if size is not None and "SIZE" in self._offers else ""
        await self.ask(Step.SENDER, f"MAIL FROM:<{sender}>{extra}", 250)

    async def write(self, data: bytes) -> None:
        """Writes as fast as the server reads. Raises SmtpLost."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise SmtpLost(f"the connection to the mail server broke: {type(error).__name__}") from None

    async def end(self) -> Reply:
        """Writes the final dot, with which the server takes the mail over. Raises SmtpLost, after which it may have."""
        await self.write(b".\r\n")
        return await self._reply()

    async def ask(self, step: Step, command: str, *expected: int, keep_lines: bool = False) -> Reply:
        """Gives a command. Raises SmtpFailed for another reply, or SmtpLost."""
        if _UNSAFE.search(command):
            raise ValueError("a command has a control character")
        await self.write(f"{command}\r\n".encode())
        return _require(step, await self._reply(keep_lines=keep_lines), *expected)

    async def leave(self, deadline: float) -> None:
        """Says goodbye, for a moment at most: whether the server hears it changes nothing."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + _PATIENCE_AT_END)):
                await self.write(b"QUIT\r\n")
                await self._reply()
        except (SmtpLost, TimeoutError):
            return

    def abort(self) -> None:
        abort(self._writer)

    async def _reply(self, *, keep_lines: bool = False) -> Reply:
        lines: list[str] = []
        for _ in range(_MOST_LINES):
            code, more, text = await self._line()
            if sum(map(len, lines)) + len(text) <= _LONGEST_TEXT:
                lines.append(text)
            if not more:
                return Reply(code=code, text=self._without_secrets(("\n" if keep_lines else " ").join(lines)))
        raise SmtpLost("the mail server sends an endless reply")

    async def _line(self) -> tuple[int, bool, str]:
        try:
            line = await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise SmtpLost("the mail server sends an endless line") from None
        except (asyncio.IncompleteReadError, OSError):
            raise SmtpLost("the mail server closed the connection") from None
        match = _REPLY.fullmatch(line) if len(line) <= _LONGEST_LINE else None
        if match is None:
            raise SmtpLost("the mail server sent something that is no reply")
        return int(match[1]), match[2] == b"-", (match[3] or b"").decode("utf-8", "replace").strip()

    def _without_secrets(self, text: str) -> str:
        for secret in self._hidden:
            text = text.replace(secret, "***")
        return text


def hidden_of(username: str, password: str) -> Sequence[str]:
    """Returns the password in each form that a session sends, the longest first."""
    forms = (_encoded(f"\0{username}\0{password}"), _encoded(password), password)
    return [form for form in forms if form]


def _require(step: Step, reply: Reply, *expected: int) -> Reply:
    if reply.code in expected:
        return reply
    error = classify_reply_at(step, reply)
    if error.kind in {ErrorClass.OK, ErrorClass.UNKNOWN_OUTCOME}:
        raise SmtpLost(f"the mail server answered {reply.code} where it must not")
    raise SmtpFailed(error)


def _unable(reason: str, message: str) -> ProviderError:
    return ProviderError(kind=ErrorClass.CONFIG, reason=reason, message=message)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
