"""Posts of the sandbox provider: effects in the ledger, found by number, by key, or by the account and their time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from devstack.sandbox.ledger import Ledger

LOOKUP_PAGE = 100


class Mode(StrEnum):
    """Mode of an account: decides how a second request with the same key ends, and whether posts can be looked up."""

    KEYED = "keyed"
    LOOKUP = "lookup"
    BLIND = "blind"


class Surface(StrEnum):
    """Surface through which posts come: each behaves like one class of social networks."""

    POSTS = "posts"
    CONTAINERS = "containers"
    UPDATES = "updates"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    account: str
    channel: str
    destination: str
    text: str
    key: str
    """Idempotency key, or on other surfaces than `posts` the reference, which only the ledger knows; may be empty."""
    surface: Surface = Surface.POSTS
    container: str = ""
    follows: str = ""
    """Id of the post below which this is a comment, or the next part of a thread; empty for a post of its own."""


class KeyReused(Exception):
    pass


class Posts:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_key: dict[tuple[str, str], list[int]] = {}
        self._by_account: dict[str, list[int]] = {}
        self._by_container: dict[str, int] = {}
        for entry in ledger.entries():
            if entry["kind"] == "effect":
                self._index(int(str(entry["seq"])), entry)

    def publish(self, post: Post, mode: Mode, time: str) -> tuple[str, bool]:
        """Returns the post's id and whether it is new; KeyReused if the key belongs to other content."""
        if post.surface is Surface.POSTS:
            known = self._by_key.get((post.account, post.key)) if post.key and mode is Mode.KEYED else None
            if known:
                self._same_content(known[0], post)
                return _id(known[0]), False
        seq = self._ledger.length + 1
        entry: dict[str, object] = {
            "kind": "effect",
            "time": time,
            "id": _id(seq),
            "account": post.account,
            "channel": post.channel,
            "destination": post.destination,
            "idempotency_key": post.key,
            "text": post.text,
        }
        if post.surface is not Surface.POSTS:
            entry |= {"surface": post.surface, "container": post.container}
        if post.follows:
            entry["follows"] = post.follows
        self._ledger.append(entry)
        self._index(seq, entry)
        return _id(seq), True

    def get(self, post_id: str) -> Mapping[str, object] | None:
        number = post_id.removeprefix("sp-")
        if not (number.isascii() and number.isdigit()):
            return None
        entry = self._ledger.read(int(number))
        return entry if entry and entry["kind"] == "effect" else None

    def find(self, account: str, key: str) -> list[Mapping[str, object]]:
        found = (self._ledger.read(seq) for seq in self._by_key.get((account, key), [])[-LOOKUP_PAGE:])
        return [effect for effect in found if effect is not None]

    def of_container(self, container: str) -> Mapping[str, object] | None:
        """Returns the post that was published from a container."""
        seq = self._by_container.get(container)
        return None if seq is None else self._ledger.read(seq)

    def newest(self, account: str, *, until: datetime) -> Iterator[Mapping[str, object]]:
        """Yields the posts of an account that are not younger than `until`, the newest first."""
        for seq in reversed(self._by_account.get(account, [])):
            effect = self._ledger.read(seq)
            assert effect is not None
            if datetime.fromisoformat(str(effect["time"])) <= until:
                yield effect

    def same_text(self, post: Post, *, until: datetime) -> str | None:
        """Returns the id of the newest post of the account that has the same text, in the same place."""
        for effect in self.newest(post.account, until=until):
            if (effect["text"], effect.get("follows", "")) == (post.text, post.follows):
                return str(effect["id"])
        return None

    def _index(self, seq: int, entry: Mapping[str, object]) -> None:
        account = str(entry["account"])
        surface = entry.get("surface", Surface.POSTS)
        if surface == Surface.POSTS:
            self._by_key.setdefault((account, str(entry["idempotency_key"])), []).append(seq)
        elif surface == Surface.UPDATES:
            self._by_account.setdefault(account, []).append(seq)
        elif surface == Surface.CONTAINERS:
            self._by_container[str(entry["container"])] = seq

    def _same_content(self, seq: int, post: Post) -> None:
        effect = self._ledger.read(seq)
        assert effect is not None
        seen = (effect["channel"], effect["destination"], effect["text"], effect.get("follows", ""))
        if seen != (post.channel, post.destination, post.text, post.follows):
            raise KeyReused


def _id(seq: int) -> str:
    return f"sp-{seq}"
