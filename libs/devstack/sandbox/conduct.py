"""Conduct of the sandbox provider: it answers a request properly, or as a fault rule wants it."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import assert_never

from devstack.sandbox.calls import Call, error_body
from devstack.sandbox.checks import Refusal
from devstack.sandbox.faults import Answer, Fault, Faults, Rule
from devstack.sandbox.http1 import Connection
from devstack.sandbox.journal import Journal

Effect = Callable[[], tuple[str, bool]]
"""Makes the post of a request exist; returns its id and whether it is new, or raises Refusal."""
_CODES = {429: "RATE_LIMITED", 500: "INTERNAL", 503: "UNAVAILABLE"}


class Conduct:
    def __init__(self, journal: Journal, faults: Faults) -> None:
        self._journal = journal
        self._faults = faults
        self._in_progress: set[tuple[str, str]] = set()
        self._timers: set[asyncio.TimerHandle] = set()

    def is_in_progress(self, account: str, key: str) -> bool:
        return (account, key) in self._in_progress

    def stop(self) -> None:
        """Drops late effects that are still to come."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._in_progress.clear()

    def take(self, call: Call) -> Rule | None:
        """Returns the rule that strikes this request, and uses it up."""
        return self._faults.take(call.operation, call.account, call.text)

    def refusable(self, call: Call, connection: Connection, action: Callable[[], object]) -> None:
        try:
            action()
        except Refusal as refusal:
            self.refuse(call, connection, refusal)

    def refuse(self, call: Call, connection: Connection, refusal: Refusal, fault: Fault | None = None) -> None:
        self._journal.note(call, "refused", status=refusal.status, fault=fault)
        body = error_body(refusal.code, str(refusal), **refusal.more)
        headers = call.quotas + refusal.headers
        self._journal.after_flush(partial(connection.answer, refusal.status, body, headers=headers))

    def serve(
        self,
        call: Call,
        connection: Connection,
        serve: Callable[[], None],
        rule: Rule | None,
        effect: Effect | None = None,
    ) -> None:
        """Serves the request, or misbehaves as the rule wants."""
        match rule.fault if rule else None:
            case None:
                serve()
            case Fault.SLOW:
                assert rule is not None
                self._later(rule.seconds, call, partial(self.refusable, call, connection, serve))
            case _:
                assert rule is not None
                self._misbehave(rule, call, connection, effect)

    def _misbehave(self, rule: Rule, call: Call, connection: Connection, effect: Effect | None) -> None:
        match rule.fault:
            case Fault.RESET_BEFORE_EFFECT:
                self._fail(Answer.RESET, rule, call, connection, None)
            case Fault.EFFECT_THEN_RESET:
                self._fail(Answer.RESET, rule, call, connection, effect)
            case Fault.HANG_WITHOUT_EFFECT:
                self._fail(Answer.HANG, rule, call, connection, None)
            case Fault.EFFECT_THEN_HANG:
                self._fail(Answer.HANG, rule, call, connection, effect)
            case Fault.STATUS:
                self._fail(Answer.STATUS, rule, call, connection, effect if rule.effect else None)
            case Fault.GARBAGE:
                self._fail(Answer.GARBAGE, rule, call, connection, effect if rule.effect else None)
            case Fault.LATE_EFFECT:
                assert effect is not None
                self._later(rule.seconds, call, partial(self._unheard, effect))
                self._fail(rule.answer, rule, call, connection, None)
            case Fault.SLOW | Fault.MEDIA | Fault.FLOOD | Fault.DUPLICATE:
                raise AssertionError(f"`{rule.fault}` is served elsewhere")
            case _:
                assert_never(rule.fault)

    def _fail(self, answer: Answer, rule: Rule, call: Call, connection: Connection, effect: Effect | None) -> None:
        post_id = effect()[0] if effect else None
        note, after_flush = self._journal.note, self._journal.after_flush
        match answer:
            case Answer.RESET:
                note(call, "reset", post_id=post_id, fault=rule.fault)
                after_flush(connection.reset)
            case Answer.HANG:
                note(call, "hung", post_id=post_id, fault=rule.fault)
            case Answer.STATUS:
                note(call, "refused", status=rule.status, post_id=post_id, fault=rule.fault)
                after_flush(partial(_answer_status, rule, call, connection))
            case Answer.GARBAGE:
                note(call, "garbage", status=200, post_id=post_id, fault=rule.fault)
                after_flush(partial(connection.answer, 200, rule.body.encode(), content_type="text/html"))
            case _:
                assert_never(answer)

    def _unheard(self, effect: Effect) -> None:
        try:
            effect()
        except Refusal:
            return  # By now the key belongs to another post, or the container has expired.
        self._journal.flush_soon()

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


def _answer_status(rule: Rule, call: Call, connection: Connection) -> None:
    code = _CODES.get(rule.status, f"STATUS_{rule.status}")
    headers = f"Retry-After: {rule.retry_after}\r\n" if rule.retry_after else ""
    connection.answer(rule.status, error_body(code, "the sandbox answers so on request"), headers=call.quotas + headers)
