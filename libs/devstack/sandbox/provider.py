"""The sandbox provider: a social network that publishes nothing, remembers everything and fails on request.

README.md states its contract.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self, assert_never
from urllib.parse import parse_qs, unquote

from devstack.sandbox.checks import LONGEST_TEXT, Refusal, authorised, exists, validated
from devstack.sandbox.faults import Answer, BadRule, Fault, Faults, Operation, Rule
from devstack.sandbox.http1 import Connection, Request
from devstack.sandbox.ledger import Ledger
from devstack.sandbox.posts import KeyReused, Mode, Post, Posts
from servicekit.clock import Clock, SystemClock

HOST = "127.0.0.1"
LEDGER_PAGE = 10_000
NDJSON = "application/x-ndjson"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Facts of a request that the ledger records with its outcome."""

    operation: Operation
    account: str
    arrival: str
    """Time at which the request came, on the provider's clock."""
    key: str = ""
    post: Post | None = None


class Sandbox:
    """Serves on the running loop. Its posts survive a restart, because they are read from the ledger."""

    def __init__(self, ledger: Path, clock: Clock | None = None) -> None:
        self.path = ledger
        self.host, self.port = HOST, 0
        self._clock = clock or SystemClock()
        self._ledger: Ledger
        self._posts: Posts
        self._modes: dict[str, Mode] = {}
        self._faults = Faults()
        self._in_progress: set[tuple[str, str]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._connections: set[Connection] = set()
        self._answers: list[Callable[[], None]] = []
        self._server: asyncio.Server | None = None

    async def start(self, host: str = HOST, port: int = 0) -> None:
        self._ledger = Ledger(self.path)
        self._posts = Posts(self._ledger)
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self._serve, _malformed, self._connections), host, port, backlog=1_024
            )
        except OSError:
            self._ledger.close()
            raise
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        """Cuts every connection; late effects that are still to come are dropped."""
        if self._server is None:
            return
        self._server.close()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._in_progress.clear()
        for connection in list(self._connections):
            connection.reset()
        await self._server.wait_closed()
        self._server = None
        self._ledger.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    # routes

    def _serve(self, request: Request, connection: Connection) -> None:
        match [unquote(part) if "%" in part else part for part in request.path.split("/")]:
            case ["", "v1", *route]:
                self._serve_public(route, request, connection)
            case ["", "control", *route] if connection.is_local:
                self._serve_control(route, request, connection)
            case _:
                connection.answer(404, _error("NOT_FOUND", "there is nothing here"))

    def _serve_public(self, route: list[str], request: Request, connection: Connection) -> None:
        match request.method, route:
            case "POST", ["accounts", account, "posts"]:
                key = request.headers.get("idempotency-key", "")
                call = Call(operation=Operation.POST, account=account, arrival=self._time(), key=key)
                self._refusable(call, connection, partial(self._take_post, call, request, connection))
            case "GET", ["accounts", account]:
                call = Call(operation=Operation.ACCOUNT, account=account, arrival=self._time())
                self._refusable(call, connection, partial(self._show_account, call, request, connection))
            case "GET", ["posts"]:
                query = parse_qs(request.query)
                account, key = (query.get(name, [""])[0] for name in ("account", "idempotency_key"))
                call = Call(operation=Operation.LOOKUP, account=account, arrival=self._time(), key=key)
                self._refusable(call, connection, partial(self._look_up, call, request, connection))
            case "GET", ["posts", post_id]:
                post = self._posts.get(post_id)
                body = (
                    _encode(self._shown(post)).encode() if post else _error("POST_NOT_FOUND", "there is no such post")
                )
                connection.answer(200 if post else 404, body)
            case _, ["accounts", _, "posts"] | ["accounts", _] | ["posts"] | ["posts", _]:
                connection.answer(405, _error("METHOD_NOT_ALLOWED", "this is served for another method"))
            case _:
                connection.answer(404, _error("NOT_FOUND", "there is nothing here"))

    def _take_post(self, call: Call, request: Request, connection: Connection) -> None:
        post = validated(call.account, call.key, request)
        if self._mode(post.account) is Mode.KEYED and (post.account, post.key) in self._in_progress:
            raise Refusal(409, "IN_PROGRESS", "a request with this idempotency key is still being worked on")
        call = replace(call, post=post)
        self._serve_or_misbehave(call, connection, partial(self._publish, call, connection))

    def _look_up(self, call: Call, request: Request, connection: Connection) -> None:
        authorised(request)
        if not call.account or not call.key:
            raise Refusal(422, "MISSING_PARAMETER", "name the account and the idempotency_key")
        exists(call.account, "account")
        if self._mode(call.account) is Mode.BLIND:
            raise Refusal(404, "LOOKUP_UNAVAILABLE", "the posts of this account cannot be looked up")

        def answer() -> None:
            posts = [self._shown(effect) for effect in self._posts.find(call.account, call.key)]
            self._note(call, "answered", status=200)
            self._after_flush(partial(connection.answer, 200, _encode({"posts": posts}).encode()))

        self._serve_or_misbehave(call, connection, answer)

    def _show_account(self, call: Call, request: Request, connection: Connection) -> None:
        authorised(request)
        exists(call.account, "account")

        def answer() -> None:
            name = f"Sandbox account {call.account}"
            facts = {"id": call.account, "name": name, "mode": self._mode(call.account), "longest_text": LONGEST_TEXT}
            self._note(call, "answered", status=200)
            self._after_flush(partial(connection.answer, 200, _encode(facts).encode()))

        self._serve_or_misbehave(call, connection, answer)

    def _publish(self, call: Call, connection: Connection) -> None:
        post_id, is_new = self._effect(call)
        status = 201 if is_new else 200
        self._note(call, "created" if is_new else "replayed", status=status, post_id=post_id)
        body = f'{{"id":"{post_id}","url":"{self.url}/v1/posts/{post_id}"}}'
        self._after_flush(partial(connection.answer, status, body.encode()))

    def _effect(self, call: Call) -> tuple[str, bool]:
        assert call.post is not None
        try:
            return self._posts.publish(call.post, self._mode(call.account), self._time())
        except KeyReused:
            raise Refusal(422, "IDEMPOTENCY_KEY_REUSED", "this idempotency key was used for another post") from None

    def _refusable(self, call: Call, connection: Connection, action: Callable[[], object]) -> None:
        try:
            action()
        except Refusal as refusal:
            self._note(call, "refused", status=refusal.status)
            self._after_flush(partial(connection.answer, refusal.status, _error(refusal.code, str(refusal))))

    # faults

    def _serve_or_misbehave(self, call: Call, connection: Connection, serve: Callable[[], None]) -> None:
        rule = self._faults.take(call.operation, call.account, call.post.text if call.post else "")
        match rule.fault if rule else None:
            case None:
                serve()
            case Fault.SLOW:
                assert rule is not None
                self._later(rule.seconds, call, partial(self._refusable, call, connection, serve))
            case _:
                assert rule is not None
                self._misbehave(rule, call, connection)

    def _misbehave(self, rule: Rule, call: Call, connection: Connection) -> None:
        match rule.fault:
            case Fault.RESET_BEFORE_EFFECT:
                self._fail(Answer.RESET, rule, call, connection, effect=False)
            case Fault.EFFECT_THEN_RESET:
                self._fail(Answer.RESET, rule, call, connection, effect=True)
            case Fault.HANG_WITHOUT_EFFECT:
                self._fail(Answer.HANG, rule, call, connection, effect=False)
            case Fault.EFFECT_THEN_HANG:
                self._fail(Answer.HANG, rule, call, connection, effect=True)
            case Fault.STATUS:
                self._fail(Answer.STATUS, rule, call, connection, effect=rule.effect)
            case Fault.GARBAGE:
                self._fail(Answer.GARBAGE, rule, call, connection, effect=rule.effect)
            case Fault.LATE_EFFECT:
                self._later(rule.seconds, call, partial(self._effect_unheard, call))
                self._fail(rule.answer, rule, call, connection, effect=False)
            case Fault.SLOW:
                raise AssertionError("`slow` is served, only later")
            case _:
                assert_never(rule.fault)

    def _fail(self, answer: Answer, rule: Rule, call: Call, connection: Connection, *, effect: bool) -> None:
        post_id = self._effect(call)[0] if effect else None
        match answer:
            case Answer.RESET:
                self._note(call, "reset", post_id=post_id, fault=rule.fault)
                self._after_flush(connection.reset)
            case Answer.HANG:
                self._note(call, "hung", post_id=post_id, fault=rule.fault)
            case Answer.STATUS:
                self._note(call, "refused", status=rule.status, post_id=post_id, fault=rule.fault)
                self._after_flush(partial(_answer_status, rule, connection))
            case Answer.GARBAGE:
                self._note(call, "garbage", status=200, post_id=post_id, fault=rule.fault)
                self._after_flush(partial(connection.answer, 200, rule.body.encode(), content_type="text/html"))
            case _:
                assert_never(answer)

    def _effect_unheard(self, call: Call) -> None:
        try:
            self._effect(call)
        except Refusal:
            return  # By now the key belongs to another post.
        self._after_flush(_nothing)

    def _later(self, seconds: float, call: Call, action: Callable[[], None]) -> None:
        mark = (call.account, call.key) if call.post and call.key else None

        def act() -> None:
            self._timers.discard(timer)
            if mark:
                self._in_progress.discard(mark)
            action()

        timer = asyncio.get_running_loop().call_later(seconds, act)
        self._timers.add(timer)
        if mark:
            self._in_progress.add(mark)

    # control

    def _serve_control(self, route: list[str], request: Request, connection: Connection) -> None:
        try:
            self._control(route, request, connection)
        except (BadRule, ValueError) as problem:
            connection.answer(422, _error("INVALID", str(problem)))

    def _control(self, route: list[str], request: Request, connection: Connection) -> None:
        answer: object
        match request.method, route:
            case "GET", ["health"]:
                answer = {"state": "serving", "ledger": self._ledger.length}
            case "GET", ["faults"]:
                answer = self._faults.described()
            case "PUT", ["faults"]:
                self._faults.replace(json.loads(request.body))
                answer = self._faults.described()
            case "DELETE", ["faults"]:
                self._faults.clear()
                answer = []
            case "PUT", ["accounts", account]:
                facts = json.loads(request.body)
                self._modes[account] = Mode(facts.get("mode", "") if isinstance(facts, dict) else "")
                answer = {"id": account, "mode": self._modes[account]}
            case "GET", ["ledger"]:
                query = parse_qs(request.query)
                since, limit = (
                    int(query.get(name, [default])[0])
                    for name, default in (("since", "0"), ("limit", str(LEDGER_PAGE)))
                )
                connection.answer(200, self._ledger.since(since, min(max(limit, 1), LEDGER_PAGE)), content_type=NDJSON)
                return
            case _:
                connection.answer(404, _error("NOT_FOUND", "there is nothing here"))
                return
        connection.answer(200, _encode(answer).encode())

    # the ledger

    def _note(
        self, call: Call, outcome: str, *, status: int = 0, post_id: str | None = None, fault: Fault | None = None
    ) -> None:
        self._ledger.append(
            {
                "kind": "request",
                "time": self._time(),
                "arrival": call.arrival,
                "operation": call.operation,
                "account": call.account,
                "idempotency_key": call.key,
                "outcome": outcome,
                "status": status,
                "id": post_id,
                "fault": fault,
            }
        )
        self._after_flush(_nothing)

    def _after_flush(self, answer: Callable[[], None]) -> None:
        """Answers after the next write, which all requests of this turn of the loop share."""
        if not self._answers:
            asyncio.get_running_loop().call_soon(self._flush)
        self._answers.append(answer)

    def _flush(self) -> None:
        answers, self._answers = self._answers, []
        if self._server is None:
            return
        self._ledger.flush()
        for answer in answers:
            answer()

    def _mode(self, account: str) -> Mode:
        return self._modes.get(account, Mode.KEYED)

    def _shown(self, effect: Mapping[str, object]) -> dict[str, object]:
        shown = {name: effect[name] for name in ("id", "account", "channel", "destination", "idempotency_key", "text")}
        return shown | {"url": f"{self.url}/v1/posts/{effect['id']}", "create_time": effect["time"]}

    def _time(self) -> str:
        return self._clock.now().isoformat(timespec="microseconds")


def _error(code: str, message: str) -> bytes:
    return _encode({"error": {"code": code, "message": message}}).encode()


def _malformed(status: int, problem: str) -> bytes:
    return _error(
        {411: "LENGTH_REQUIRED", 413: "BODY_TOO_LARGE", 431: "HEAD_TOO_LARGE"}.get(status, "MALFORMED"), problem
    )


def _answer_status(rule: Rule, connection: Connection) -> None:
    code = {429: "RATE_LIMITED", 500: "INTERNAL", 503: "UNAVAILABLE"}.get(rule.status, f"STATUS_{rule.status}")
    headers = f"Retry-After: {rule.retry_after}\r\n" if rule.retry_after else ""
    connection.answer(rule.status, _error(code, "the sandbox answers so on request"), headers=headers)


def _nothing() -> None:
    pass
