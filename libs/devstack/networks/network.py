"""A fake of a social network over real HTTP: it keeps the contract, remembers every effect, and fails on request.

A subclass is one network. It names its operations by `@operation`, keeps its state in memory, and writes each effect
into the ledger before it is answered. What a client must never do is noted as a problem, for tests to ask about.
"""

import asyncio
import gzip
import json
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from aiohttp import web

from devstack.networks.faults import BadRule, Fault, Faults, Rule
from devstack.sandbox.ledger import Ledger
from servicekit.clock import Clock, SystemClock

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Served = TypeVar("Served", bound=Callable[..., Awaitable[web.StreamResponse]])

HOST = "127.0.0.1"
LONGEST_BODY = 128 * 1024 * 1024
_PAGE = "<html><body>It works!</body></html>"
_PIECE = b"x" * 65_536
_BOMB_BYTES = 64 * 1024 * 1024


def operation(name: str) -> Callable[[Served], Served]:
    """Names what a handler does, for rules of faults and for the ledger."""

    def named(handler: Served) -> Served:
        handler.operation = name  # type: ignore[attr-defined]
        return handler

    return named


class Network(ABC):
    """Serves on the running loop. `seconds` of waits are those of its clock."""

    name: ClassVar[str]

    def __init__(self, ledger: Path | None = None, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.faults = Faults()
        self.effects: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self._ledger = Ledger(ledger) if ledger else None
        self._runner: web.AppRunner | None = None
        self._hanging = asyncio.Event()
        self.url = ""

    @abstractmethod
    def routes(self) -> Iterable[web.RouteDef]:
        """Returns what the network serves."""

    def account_of(self, request: web.Request) -> str:
        """Returns the account that a request is about, for rules of faults; empty if it does not say."""
        return request.match_info.get("account", "")

    @abstractmethod
    def rate_limited(self, request: web.Request, seconds: float) -> web.Response:
        """Returns the network's own way to say "later"."""

    @abstractmethod
    def refused(self, request: web.Request) -> web.Response:
        """Returns the network's own way to refuse a content for good."""

    @abstractmethod
    def error(self) -> Mapping[str, Any]:
        """Returns an error of the network as its body has it."""

    def furnish(self) -> str:
        """Makes accounts for somebody who tries the fake alone. Returns what to connect with."""
        return "connect with any token that begins with sandbox-"

    def control(self) -> Iterable[web.RouteDef]:
        """Returns further control calls, for callers on this machine."""
        return ()

    def effect(self, account: str, **facts: object) -> dict[str, Any]:
        """Notes that a post is out, before it is answered. Returns the line."""
        line = {"kind": "effect", "time": self.now(), "network": self.name, "account": account, **facts}
        self.effects.append(line)
        self._write(line)
        return line

    def problem(self, text: str) -> None:
        """Notes that the client did what it must never do."""
        self.problems.append(text)
        self._write({"kind": "problem", "time": self.now(), "network": self.name, "text": text})

    def effects_of(self, **facts: object) -> list[dict[str, Any]]:
        return [each for each in self.effects if facts.items() <= each.items()]

    def now(self) -> str:
        return self.clock.now().isoformat(timespec="microseconds")

    async def start(self, host: str = HOST, port: int = 0) -> None:
        app = web.Application(middlewares=[self._conduct], client_max_size=LONGEST_BODY)
        app.add_routes([*self.routes(), *self._control_routes(), *self.control()])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.url = f"http://{host}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        self._hanging.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @web.middleware
    async def _conduct(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        name = getattr(request.match_info.handler, "operation", "")
        if not name:
            return await handler(request)
        account = self.account_of(request)
        self.calls.append((name, account))
        rule = self.faults.take(name, account)
        self._write({"kind": "request", "time": self.now(), "operation": name, "account": account} | _struck(rule))
        if rule is None:
            return await handler(request)
        if rule.fault is Fault.SLOW:
            await self._hang(rule.seconds)
            return await handler(request)
        proper = await handler(request) if rule.effect else None
        return await self._misbehave(rule, request, proper)

    async def _misbehave(
        self, rule: Rule, request: web.Request, proper: web.StreamResponse | None
    ) -> web.StreamResponse:
        match rule.fault:
            case Fault.RESET:
                return _reset(request)
            case Fault.HANG:
                await self._hang(3600.0)
                return _reset(request)
            case Fault.ENDLESS:
                return await self._endless(request)
            case Fault.RATE_LIMIT:
                return self.rate_limited(request, rule.seconds or 30.0)
            case Fault.REFUSAL:
                return self.refused(request)
            case _:
                return self._wrong_answer(rule, proper)

    def _wrong_answer(self, rule: Rule, proper: web.StreamResponse | None) -> web.Response:
        match rule.fault:
            case Fault.ANSWER:
                text = rule.body if isinstance(rule.body, str) else json.dumps(rule.body)
                kind = "text/plain" if isinstance(rule.body, str) else "application/json"
                return web.Response(status=rule.status, headers=rule.headers, text=text, content_type=kind)
            case Fault.HTML:
                return web.Response(text=_PAGE, content_type="text/html")
            case Fault.NAMELESS:
                return web.json_response({}, status=proper.status if proper else 200)
            case Fault.ERROR_IN_200:
                return web.json_response(self.error())
            case Fault.GZIP_BOMB:
                headers = {"Content-Encoding": "gzip"}
                return web.Response(body=_bomb(), headers=headers, content_type="application/json")
            case Fault.REDIRECT:
                return web.Response(status=302, headers={"Location": rule.location or f"{self.url}/elsewhere"})
            case _:
                raise AssertionError(f"`{rule.fault}` is served elsewhere")

    async def _hang(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._hanging.wait()
        except TimeoutError:
            return

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while not self._hanging.is_set():
                await response.write(_PIECE)
        except ConnectionError:
            pass
        return response

    def _control_routes(self) -> Iterable[web.RouteDef]:
        return (
            web.put("/control/faults", self._put_faults),
            web.get("/control/faults", self._get_faults),
            web.get("/control/effects", self._get_effects),
            web.get("/control/problems", self._get_problems),
        )

    async def _put_faults(self, request: web.Request) -> web.Response:
        try:
            self.faults.replace(await request.json())
        except (BadRule, ValueError, TypeError) as error:
            return web.json_response({"error": str(error)}, status=422)
        return web.json_response(self.faults.described())

    async def _get_faults(self, _request: web.Request) -> web.Response:
        return web.json_response(self.faults.described())

    async def _get_effects(self, _request: web.Request) -> web.Response:
        return web.json_response(self.effects)

    async def _get_problems(self, _request: web.Request) -> web.Response:
        return web.json_response(self.problems)

    def _write(self, line: Mapping[str, object]) -> None:
        if self._ledger is not None:
            self._ledger.append(line)
            self._ledger.flush()


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(_BOMB_BYTES))


def _struck(rule: Rule | None) -> dict[str, object]:
    return {"fault": rule.fault, "effect": rule.effect} if rule else {}


def _reset(request: web.Request) -> web.StreamResponse:
    """Cuts the connection so that the client sees it break, not end."""
    transport = request.transport
    if transport is not None:
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()
