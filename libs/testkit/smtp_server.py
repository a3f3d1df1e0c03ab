"""An SMTP server on this loop: keeps what it accepts, and fails at any command as a test scripts it.

It follows RFC 5321 as far as a client can tell: the order of commands, their reply codes, transparency of dots, and
one reply per recipient. AUTH PLAIN and LOGIN, STARTTLS and implicit TLS are there if they are asked for.
"""

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from enum import StrEnum
from typing import Final, Self

from testkit.eventually import eventually

_LONGEST_LINE: Final = 64 * 1024
_IDLE_SECONDS: Final = 30.0


class At(StrEnum):
    """A moment in a session at which a fault may come."""

    CONNECT = "CONNECT"
    EHLO = "EHLO"
    STARTTLS = "STARTTLS"
    AUTH = "AUTH"
    MAIL = "MAIL"
    RCPT = "RCPT"
    DATA = "DATA"
    # Behind the final dot, before the message is kept.
    BODY = "BODY"
    # The message is kept, and the client does not know it yet.
    KEPT = "KEPT"
    QUIT = "QUIT"


@dataclass(slots=True, kw_only=True)
class Fault:
    """A failure at some moment, `times` times: a reply, or a broken or a hanging connection if it is empty."""

    at: At
    reply: str = ""
    hang: bool = False
    # The proper reply comes, after so many seconds.
    seconds: float = 0.0
    # Only for commands that contain this text, such as the address of a recipient.
    about: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A message that the server has taken over."""

    sender: str
    recipients: tuple[str, ...]
    data: bytes
    user: str
    is_encrypted: bool

    @property
    def message(self) -> EmailMessage:
        return message_from_bytes(self.data, policy=policy.default)


@dataclass(slots=True, kw_only=True)
class _Session:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    is_encrypted: bool
    greeted: bool = False
    user: str = ""
    sender: str | None = None
    recipients: list[str] = field(default_factory=list)


Command = Callable[[_Session, str, str], Awaitable[None]]


class _Over(Exception):
    """The session ends here."""


class SmtpServer:
    """`async with SmtpServer() as server:` listens on loopback at `server.port`."""

    def __init__(
        self,
        *,
        users: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        implicit_tls: bool = False,
        host: str = "127.0.0.1",
    ) -> None:
        """Takes mail only after AUTH if there are `users` (with their passwords), and offers STARTTLS with `tls`."""
        self.host = host
        self.port = 0
        self.kept: list[Kept] = []
        # Every command as it came, for tests of what a client says; passwords included.
        self.heard: list[str] = []
        self.sessions = 0
        self._users = users
        self._tls = tls
        self._implicit = implicit_tls
        self._faults: list[Fault] = []
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        tls = self._tls if self._implicit else None
        self._server = await asyncio.start_server(self._serve, self.host, self.port, limit=_LONGEST_LINE, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()
        await eventually(lambda: not self._writers, within=5)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def fail(
        self, at: At, reply: str = "", *, hang: bool = False, seconds: float = 0.0, about: str = "", times: int = 1
    ) -> None:
        """Replies so at that moment; without a reply the connection breaks, hangs, or is slow."""
        self._faults.append(Fault(at=at, reply=reply, hang=hang, seconds=seconds, about=about, times=times))

    def heal(self) -> None:
        """Forgets the faults that have not come yet."""
        self._faults.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.sessions += 1
        self._writers.add(writer)
        session = _Session(reader=reader, writer=writer, is_encrypted=self._implicit)
        try:
            with suppress(_Over, OSError, EOFError, TimeoutError, ValueError):
                await self._converse(session)
        finally:
            session.writer.transport.abort()
            writer.transport.abort()
            self._writers.discard(writer)

    async def _converse(self, session: _Session) -> None:
        if not await self._faulty(session, At.CONNECT, ""):
            await _say(session, "220 testkit ESMTP")
        while True:
            line = await _line(session)
            self.heard.append(line)
            await self._obey(session, line)

    async def _obey(self, session: _Session, line: str) -> None:
        verb, _, rest = line.partition(" ")
        command = self._commands(session).get(verb.upper())
        if command is None:
            await _say(session, "502 5.5.1 command not implemented")
        else:
            await command(session, line, rest)

    def _commands(self, session: _Session) -> Mapping[str, Command]:
        """Returns the commands that the session may give now, as far as the server offers them."""
        commands: dict[str, Command] = {
            "EHLO": self._ehlo,
            "HELO": self._ehlo,
            "MAIL": self._mail,
            "RCPT": self._rcpt,
            "DATA": self._data,
            "RSET": _rset,
            "NOOP": _noop,
            "QUIT": self._quit,
        }
        if self._tls is not None and not session.is_encrypted:
            commands["STARTTLS"] = self._start_tls
        if self._users is not None:
            commands["AUTH"] = self._auth
        return commands

    async def _ehlo(self, session: _Session, line: str, _rest: str) -> None:
        if await self._faulty(session, At.EHLO, line):
            return
        session.greeted = True
        _reset(session)
        offers = ["testkit", "SIZE 10485760", "8BITMIME"]
        if self._tls is not None and not session.is_encrypted:
            offers.append("STARTTLS")
        if self._users is not None:
            offers.append("AUTH PLAIN LOGIN")
        last = len(offers) - 1
        await _say(session, *(f"250{' ' if place == last else '-'}{each}" for place, each in enumerate(offers)))

    async def _start_tls(self, session: _Session, line: str, _rest: str) -> None:
        if await self._faulty(session, At.STARTTLS, line):
            return
        assert self._tls is not None
        await _say(session, "220 2.0.0 ready")
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_LONGEST_LINE)
        protocol = asyncio.StreamReaderProtocol(reader)
        plain = session.writer.transport
        transport = await loop.start_tls(plain, protocol, self._tls, server_side=True)
        if transport is None or plain.is_closing():
            raise _Over  # the client did not like the certificate
        protocol.connection_made(transport)
        session.reader, session.writer = reader, asyncio.StreamWriter(transport, protocol, reader, loop)
        session.is_encrypted, session.greeted = True, False

    async def _auth(self, session: _Session, line: str, rest: str) -> None:
        if await self._faulty(session, At.AUTH, line):
            return
        method, _, initial = rest.partition(" ")
        if method.upper() == "PLAIN":
            _, user, password = (_decoded(initial or await self._asked(session, "")) + "\0\0").split("\0")[:3]
        elif method.upper() == "LOGIN":
            user = _decoded(initial or await self._asked(session, "Username:"))
            password = _decoded(await self._asked(session, "Password:"))
        else:
            await _say(session, "504 5.5.4 unknown mechanism")
            return
        if self._users is None or self._users.get(user) != password:
            await _say(session, "535 5.7.8 authentication failed")
            return
        session.user = user
        await _say(session, "235 2.7.0 accepted")

    async def _asked(self, session: _Session, prompt: str) -> str:
        await _say(session, f"334 {base64.b64encode(prompt.encode()).decode()}")
        answer = await _line(session)
        self.heard.append(answer)
        return answer

    async def _mail(self, session: _Session, line: str, rest: str) -> None:
        if await self._faulty(session, At.MAIL, line):
            return
        if not session.greeted or session.sender is not None:
            await _say(session, "503 5.5.1 bad sequence of commands")
        elif self._users is not None and not session.user:
            await _say(session, "530 5.7.0 authentication required")
        else:
            session.sender = _address(rest)
            await _say(session, "250 2.1.0 OK")

    async def _rcpt(self, session: _Session, line: str, rest: str) -> None:
        if await self._faulty(session, At.RCPT, line):
            return
        if session.sender is None:
            await _say(session, "503 5.5.1 bad sequence of commands")
            return
        session.recipients.append(_address(rest))
        await _say(session, "250 2.1.5 OK")

    async def _data(self, session: _Session, line: str, _rest: str) -> None:
        if await self._faulty(session, At.DATA, line):
            return
        if not session.recipients:
            await _say(session, "503 5.5.1 no valid recipients")
            return
        await _say(session, "354 go on")
        data = await _body(session)
        if await self._faulty(session, At.BODY, line):
            _reset(session)
            return
        self.kept.append(
            Kept(
                sender=session.sender or "",
                recipients=tuple(session.recipients),
                data=data,
                user=session.user,
                is_encrypted=session.is_encrypted,
            )
        )
        _reset(session)
        if not await self._faulty(session, At.KEPT, line):
            await _say(session, f"250 2.0.0 queued as {len(self.kept)}")

    async def _quit(self, session: _Session, line: str, _rest: str) -> None:
        if not await self._faulty(session, At.QUIT, line):
            await _say(session, "221 2.0.0 bye")
        raise _Over

    async def _faulty(self, session: _Session, at: At, line: str) -> bool:
        """Acts out the first fault that is due here; returns whether there was one, and so a reply."""
        fault = next((each for each in self._faults if each.at is at and each.about in line), None)
        if fault is None:
            return False
        fault.times -= 1
        if not fault.times:
            self._faults.remove(fault)
        if fault.seconds:
            await asyncio.sleep(fault.seconds)
            return False
        if fault.hang:
            # Until the client closes the connection, or the server does.
            await session.reader.read()
            raise _Over
        if not fault.reply:
            raise _Over
        await _say(session, fault.reply)
        if fault.reply.startswith("421"):
            raise _Over
        return True


async def _rset(session: _Session, _line: str, _rest: str) -> None:
    _reset(session)
    await _say(session, "250 2.0.0 OK")


async def _noop(session: _Session, _line: str, _rest: str) -> None:
    await _say(session, "250 2.0.0 OK")


async def _line(session: _Session) -> str:
    async with asyncio.timeout(_IDLE_SECONDS):
        return (await session.reader.readuntil(b"\r\n")).decode("utf-8", "replace").removesuffix("\r\n")


async def _say(session: _Session, *lines: str) -> None:
    session.writer.write("".join(f"{line}\r\n" for line in lines).encode())
    await session.writer.drain()


async def _body(session: _Session) -> bytes:
    lines: list[bytes] = []
    async with asyncio.timeout(_IDLE_SECONDS):
        while (line := await session.reader.readuntil(b"\r\n")) != b".\r\n":
            lines.append(line.removeprefix(b"."))
    return b"".join(lines)


def _reset(session: _Session) -> None:
    session.sender = None
    session.recipients = []


def _address(rest: str) -> str:
    return rest.partition("<")[2].partition(">")[0]


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode("utf-8", "replace")
