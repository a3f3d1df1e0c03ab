"""Requests for posts at the sandbox provider: the surfaces `posts`, `updates` and `messages`, and their look-ups."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import parse_qs

from devstack.sandbox.calls import Call, body_of
from devstack.sandbox.checks import LONGEST_TEXT, Refusal, authorised, exists, may_post, validated
from devstack.sandbox.conduct import Conduct
from devstack.sandbox.faults import Fault, Operation, Rule
from devstack.sandbox.http1 import Connection, Request
from devstack.sandbox.journal import Journal
from devstack.sandbox.posts import LOOKUP_PAGE, KeyReused, Mode, Post, Posts, Surface
from devstack.sandbox.quotas import Quotas
from devstack.sandbox.settings import Accounts
from devstack.sandbox.tokens import Tokens

GHOST = "sp-ghost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that all requests need."""

    journal: Journal
    conduct: Conduct
    accounts: Accounts
    posts: Posts
    quotas: Quotas
    tokens: Tokens
    url: Callable[[], str]

    def authorise(self, request: Request) -> None:
        self.tokens.check(authorised(request).removeprefix("Bearer "))

    def allow(self, account: str, request: Request) -> None:
        """Raises Refusal unless the token may post and the account need not wait."""
        self.authorise(request)
        may_post(request, account)
        self.accounts.check_flood(account, self.journal.now())

    def require_parent(self, post: Post) -> None:
        """Raises Refusal if the post follows one of the account that does not exist."""
        parent = self.posts.get(post.follows) if post.follows else None
        if post.follows and (parent is None or parent["account"] != post.account):
            raise Refusal(404, "PARENT_NOT_FOUND", "there is no such post to follow")

    def answer(self, call: Call, connection: Connection, outcome: str, status: int, body: bytes, post_id: str) -> None:
        self.journal.note(call, outcome, status=status, post_id=post_id or None)
        self.journal.after_flush(partial(connection.answer, status, body, headers=call.quotas))

    def show_created(self, call: Call, connection: Connection, effect: Callable[[], tuple[str, bool]]) -> None:
        post_id, is_new = effect()
        body = f'{{"id":"{post_id}","url":"{self.url()}/v1/posts/{post_id}"}}'.encode()
        self.answer(call, connection, "created" if is_new else "replayed", 201 if is_new else 200, body, post_id)

    def shown(self, effect: Mapping[str, object]) -> dict[str, object]:
        names = ("id", "account", "channel", "destination", "idempotency_key", "text")
        shown = {name: effect[name] for name in names}
        if follows := effect.get("follows"):
            shown["follows"] = follows
        return shown | {"url": f"{self.url()}/v1/posts/{effect['id']}", "create_time": effect["time"]}


class Publishing:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def take(self, surface: Surface, account: str, request: Request, connection: Connection) -> None:
        name = "idempotency-key" if surface is Surface.POSTS else "x-reference"
        call = self._call(Operation.POST, account, request.headers.get(name, ""))
        work = partial(self._take_post, call, surface, request, connection)
        self._parts.conduct.refusable(call, connection, work)

    def look_up(self, request: Request, connection: Connection) -> None:
        query = parse_qs(request.query)
        account, key = (query.get(name, [""])[0] for name in ("account", "idempotency_key"))
        call = self._call(Operation.LOOKUP, account, key)
        self._parts.conduct.refusable(call, connection, partial(self._look_up, call, request, connection))

    def list_updates(self, account: str, request: Request, connection: Connection) -> None:
        call = self._call(Operation.LOOKUP, account)
        self._parts.conduct.refusable(call, connection, partial(self._list_updates, call, request, connection))

    def show_account(self, account: str, request: Request, connection: Connection) -> None:
        call = self._call(Operation.ACCOUNT, account)
        self._parts.conduct.refusable(call, connection, partial(self._show_account, call, request, connection))

    def _call(self, operation: Operation, account: str, key: str = "") -> Call:
        return Call(operation=operation, account=account, arrival=self._parts.journal.time(), key=key)

    def _take_post(self, call: Call, surface: Surface, request: Request, connection: Connection) -> None:
        parts = self._parts
        parts.allow(call.account, request)
        post = validated(call.account, surface, call.key, request)
        parts.require_parent(post)
        is_keyed = surface is Surface.POSTS and self._mode(post.account) is Mode.KEYED
        if is_keyed and parts.conduct.is_in_progress(post.account, post.key):
            raise Refusal(409, "IN_PROGRESS", "a request with this idempotency key is still being worked on")
        left = parts.quotas.take(surface, post.account, post.channel, parts.journal.now())
        call = replace(call, post=post, quotas=left)
        rule = parts.conduct.take(call)
        if rule is not None and rule.fault is Fault.FLOOD:
            flood(parts, call.account, rule)
        self._check_duplicate(call, surface, rule)
        effect = partial(self._effect, call)
        parts.conduct.serve(call, connection, partial(parts.show_created, call, connection, effect), rule, effect)

    def _check_duplicate(self, call: Call, surface: Surface, rule: Rule | None) -> None:
        scripted = rule is not None and rule.fault is Fault.DUPLICATE
        refused = surface is Surface.UPDATES and self._parts.accounts.of(call.account).refuse_duplicates
        if not (scripted or refused):
            return
        assert call.post is not None
        known = self._parts.posts.same_text(call.post, until=self._parts.journal.now())
        if known is None and not scripted:
            return
        named = GHOST if known is None or (rule is not None and rule.ghost) else known
        raise Refusal(422, "DUPLICATE_POST", f"the text is a duplicate of {named}", duplicate_of=named)

    def _effect(self, call: Call) -> tuple[str, bool]:
        assert call.post is not None
        try:
            return self._parts.posts.publish(call.post, self._mode(call.account), self._parts.journal.time())
        except KeyReused:
            raise Refusal(422, "IDEMPOTENCY_KEY_REUSED", "this idempotency key was used for another post") from None

    def _look_up(self, call: Call, request: Request, connection: Connection) -> None:
        parts = self._parts
        parts.authorise(request)
        if not call.account or not call.key:
            raise Refusal(422, "MISSING_PARAMETER", "name the account and the idempotency_key")
        exists(call.account, "account")
        if self._mode(call.account) is Mode.BLIND:
            raise Refusal(404, "LOOKUP_UNAVAILABLE", "the posts of this account cannot be looked up")

        def answer() -> None:
            posts = [parts.shown(effect) for effect in parts.posts.find(call.account, call.key)]
            parts.answer(call, connection, "answered", 200, body_of({"posts": posts}), "")

        parts.conduct.serve(call, connection, answer, parts.conduct.take(call))

    def _list_updates(self, call: Call, request: Request, connection: Connection) -> None:
        parts = self._parts
        parts.authorise(request)
        exists(call.account, "account")
        since = _instant(parse_qs(request.query).get("since", [""])[0])

        def answer() -> None:
            lag = timedelta(seconds=parts.accounts.of(call.account).visibility_lag)
            visible = parts.posts.newest(call.account, until=parts.journal.now() - lag)
            wanted = itertools.takewhile(lambda effect: _is_since(effect, since), visible)
            # One more than a page holds, to know whether there are more.
            found = [parts.shown(effect) for effect in itertools.islice(wanted, LOOKUP_PAGE + 1)]
            for each in found:
                del each["idempotency_key"]
            body = {"updates": found[:LOOKUP_PAGE], "more": len(found) > LOOKUP_PAGE}
            parts.answer(call, connection, "answered", 200, body_of(body), "")

        parts.conduct.serve(call, connection, answer, parts.conduct.take(call))

    def _show_account(self, call: Call, request: Request, connection: Connection) -> None:
        parts = self._parts
        parts.authorise(request)
        exists(call.account, "account")

        def answer() -> None:
            name = f"Sandbox account {call.account}"
            facts = {"id": call.account, "name": name, "mode": self._mode(call.account), "longest_text": LONGEST_TEXT}
            parts.answer(call, connection, "answered", 200, body_of(facts), "")

        parts.conduct.serve(call, connection, answer, parts.conduct.take(call))

    def _mode(self, account: str) -> Mode:
        return self._parts.accounts.of(account).mode


def flood(parts: Parts, account: str, rule: Rule) -> None:
    """Lets the account wait from now on, and refuses this request."""
    now = parts.journal.now()
    parts.accounts.flood(account, seconds=rule.seconds, now=now)
    parts.accounts.check_flood(account, now)


def _instant(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError:
        time = None
    if text and (time is None or time.tzinfo is None):
        raise Refusal(422, "INVALID_FIELD", "since must be an instant with its offset from UTC")
    return time


def _is_since(effect: Mapping[str, object], since: datetime | None) -> bool:
    return since is None or datetime.fromisoformat(str(effect["time"])) >= since
