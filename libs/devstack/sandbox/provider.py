"""The sandbox provider: a social network that publishes nothing, remembers everything and fails on request.

README.md states its contract.
"""

import asyncio
from pathlib import Path
from typing import Self
from urllib.parse import unquote

from devstack.sandbox.authorizing import Authorizing
from devstack.sandbox.calls import body_of, error_body
from devstack.sandbox.codes import Codes
from devstack.sandbox.conduct import Conduct
from devstack.sandbox.containers import Containers
from devstack.sandbox.containing import Containing
from devstack.sandbox.control import Control
from devstack.sandbox.faults import Faults
from devstack.sandbox.http1 import Connection, Request
from devstack.sandbox.journal import Journal
from devstack.sandbox.ledger import Ledger
from devstack.sandbox.posts import Posts, Surface
from devstack.sandbox.publishing import Parts, Publishing
from devstack.sandbox.quotas import Quotas
from devstack.sandbox.settings import Accounts
from devstack.sandbox.tokens import Tokens
from servicekit.clock import Clock, SystemClock

HOST = "127.0.0.1"
_SURFACES = {surface.value: surface for surface in (Surface.POSTS, Surface.UPDATES, Surface.MESSAGES)}


class Sandbox:
    """Serves on the running loop. What it made and issued survives a restart: it is read from the ledger."""

    def __init__(self, ledger: Path, clock: Clock | None = None) -> None:
        self.path = ledger
        self.host, self.port = HOST, 0
        self._clock = clock or SystemClock()
        self._faults = Faults()
        self._accounts = Accounts()
        self._quotas = Quotas()
        self._parts: Parts
        self._publishing: Publishing
        self._containing: Containing
        self._authorizing: Authorizing
        self._control: Control
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str = HOST, port: int = 0) -> None:
        journal = Journal(Ledger(self.path), self._clock)
        self._open(journal)
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self._serve, _malformed, self._connections), host, port, backlog=1_024
            )
        except OSError:
            journal.close()
            raise
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        """Cuts every connection; late effects that are still to come are dropped."""
        if self._server is None:
            return
        self._server.close()
        self._parts.conduct.stop()
        for connection in list(self._connections):
            connection.reset()
        await self._server.wait_closed()
        self._server = None
        self._parts.journal.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def _open(self, journal: Journal) -> None:
        posts, tokens = Posts(journal.ledger), Tokens(journal)
        self._parts = Parts(
            journal=journal,
            conduct=Conduct(journal, self._faults),
            accounts=self._accounts,
            posts=posts,
            quotas=self._quotas,
            tokens=tokens,
            url=lambda: self.url,
        )
        self._publishing = Publishing(self._parts)
        self._containing = Containing(self._parts, Containers(journal, posts))
        self._authorizing = Authorizing(self._parts, Codes(journal, tokens))
        self._control = Control(journal, self._faults, self._accounts, self._quotas, tokens)

    def _serve(self, request: Request, connection: Connection) -> None:
        match [unquote(part) if "%" in part else part for part in request.path.split("/")]:
            case ["", "v1", *route]:
                self._serve_public(route, request, connection)
            case ["", "control", *route] if connection.is_local:
                self._control.serve(route, request, connection)
            case _:
                connection.answer(404, error_body("NOT_FOUND", "there is nothing here"))

    def _serve_public(self, route: list[str], request: Request, connection: Connection) -> None:
        match request.method, route:
            case "POST", ["accounts", account, ("posts" | "updates" | "messages") as surface]:
                self._publishing.take(_SURFACES[surface], account, request, connection)
            case "POST", ["accounts", account, "containers"]:
                self._containing.make(account, request, connection)
            case "POST", ["containers", container, "publish"]:
                self._containing.publish(container, request, connection)
            case "GET", ["containers", container]:
                self._containing.show(container, request, connection)
            case "GET", ["accounts", account, "updates"]:
                self._publishing.list_updates(account, request, connection)
            case "GET", ["accounts", account]:
                self._publishing.show_account(account, request, connection)
            case "GET", ["posts"]:
                self._publishing.look_up(request, connection)
            case "GET", ["posts", post_id]:
                self._show_post(post_id, connection)
            case ("GET", ["authorize"]) | ("POST", ["token"]):
                self._authorizing.take(request, connection)
            case _:
                known = _is_known(route)
                code, message = (
                    ("METHOD_NOT_ALLOWED", "this is served for another method")
                    if known
                    else ("NOT_FOUND", "there is nothing here")
                )
                connection.answer(405 if known else 404, error_body(code, message))

    def _show_post(self, post_id: str, connection: Connection) -> None:
        post = self._parts.posts.get(post_id)
        body = body_of(self._parts.shown(post)) if post else error_body("POST_NOT_FOUND", "there is no such post")
        connection.answer(200 if post else 404, body)


def _is_known(route: list[str]) -> bool:
    match route:
        case ["accounts", _] | ["accounts", _, "posts" | "updates" | "messages" | "containers"]:
            return True
        case ["containers", _] | ["containers", _, "publish"] | ["posts"] | ["posts", _] | ["authorize" | "token"]:
            return True
        case _:
            return False


def _malformed(status: int, problem: str) -> bytes:
    return error_body(
        {411: "LENGTH_REQUIRED", 413: "BODY_TOO_LARGE", 431: "HEAD_TOO_LARGE"}.get(status, "MALFORMED"), problem
    )
