"""Requests for containers at the sandbox provider: make one, ask how far it is, publish it."""

from dataclasses import replace
from functools import partial

from devstack.sandbox.calls import Call, body_of
from devstack.sandbox.checks import validated
from devstack.sandbox.containers import ERROR, Containers, post_of
from devstack.sandbox.faults import Fault, Operation
from devstack.sandbox.http1 import Connection, Request
from devstack.sandbox.posts import Surface
from devstack.sandbox.publishing import Parts, flood


class Containing:
    def __init__(self, parts: Parts, containers: Containers) -> None:
        self._parts = parts
        self._containers = containers

    def make(self, account: str, request: Request, connection: Connection) -> None:
        call = self._call(Operation.CONTAINER, account, request.headers.get("x-reference", ""))
        self._parts.conduct.refusable(call, connection, partial(self._make, call, request, connection))

    def show(self, container: str, request: Request, connection: Connection) -> None:
        call = self._call(Operation.STATUS, self._containers.account_of(container), container)
        self._parts.conduct.refusable(call, connection, partial(self._show, call, container, request, connection))

    def publish(self, container: str, request: Request, connection: Connection) -> None:
        call = self._call(Operation.POST, self._containers.account_of(container), "")
        self._parts.conduct.refusable(call, connection, partial(self._publish, call, container, request, connection))

    def _make(self, call: Call, request: Request, connection: Connection) -> None:
        parts = self._parts
        parts.allow(call.account, request)
        post = validated(call.account, Surface.CONTAINERS, call.key, request)
        parts.require_parent(post)
        call = replace(call, post=post)
        rule = parts.conduct.take(call)
        if rule is not None and rule.fault is Fault.FLOOD:
            flood(parts, call.account, rule)
        facts = parts.accounts.of(call.account)
        seconds, life, error = facts.media_seconds, facts.container_life, ""
        if rule is not None and rule.fault is Fault.MEDIA:
            seconds, life, error = rule.seconds, rule.life, rule.error
            rule = None

        def answer() -> None:
            container = self._containers.make(post, seconds=seconds, life=life, error=error)
            parts.answer(call, connection, "created", 201, body_of({"id": container}), container)

        parts.conduct.serve(call, connection, answer, rule)

    def _show(self, call: Call, container: str, request: Request, connection: Connection) -> None:
        parts = self._parts
        parts.authorise(request)
        line = self._containers.get(container)

        def answer() -> None:
            status = self._containers.status(line)
            shown: dict[str, object] = {"id": container, "status": status}
            if status == ERROR:
                shown["error"] = line["error"]
            if post := parts.posts.of_container(container):
                shown["post"] = {name: value for name, value in parts.shown(post).items() if name != "idempotency_key"}
            parts.answer(call, connection, "answered", 200, body_of(shown), "")

        parts.conduct.serve(call, connection, answer, parts.conduct.take(call))

    def _publish(self, call: Call, container: str, request: Request, connection: Connection) -> None:
        parts = self._parts
        parts.allow(call.account, request)
        line = self._containers.get(container)
        post = post_of(line)
        left = parts.quotas.take(Surface.CONTAINERS, post.account, post.channel, parts.journal.now())
        call = replace(call, post=post, key=post.key, quotas=left)
        rule = parts.conduct.take(call)
        if rule is not None and rule.fault is Fault.FLOOD:
            flood(parts, call.account, rule)
        effect = partial(self._containers.publish, line)
        parts.conduct.serve(call, connection, partial(parts.show_created, call, connection, effect), rule, effect)

    def _call(self, operation: Operation, account: str, key: str) -> Call:
        return Call(operation=operation, account=account, arrival=self._parts.journal.time(), key=key)
