"""Posts of the sandbox provider: effects in the ledger, found by number or by account and idempotency key."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from devstack.sandbox.ledger import Ledger

LOOKUP_PAGE = 100


class Mode(StrEnum):
    """Mode of an account: decides how a second request with the same key ends, and whether posts can be looked up."""

    KEYED = "keyed"
    LOOKUP = "lookup"
    BLIND = "blind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    account: str
    channel: str
    destination: str
    text: str
    key: str
    """Idempotency key; empty if none was given."""


class KeyReused(Exception):
    pass


class Posts:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._effects: dict[tuple[str, str], list[int]] = {}
        for entry in ledger.entries():
            if entry["kind"] == "effect":
                self._effects.setdefault((str(entry["account"]), str(entry["idempotency_key"])), []).append(
                    int(str(entry["seq"]))
                )

    def publish(self, post: Post, mode: Mode, time: str) -> tuple[str, bool]:
        """Returns the post's id and whether it is new; KeyReused if the key belongs to other content."""
        known = self._effects.get((post.account, post.key)) if post.key and mode is Mode.KEYED else None
        if known:
            self._same_content(known[0], post)
            return _id(known[0]), False
        seq = self._ledger.length + 1
        self._ledger.append(
            {
                "kind": "effect",
                "time": time,
                "id": _id(seq),
                "account": post.account,
                "channel": post.channel,
                "destination": post.destination,
                "idempotency_key": post.key,
                "text": post.text,
            }
        )
        self._effects.setdefault((post.account, post.key), []).append(seq)
        return _id(seq), True

    def get(self, post_id: str) -> Mapping[str, object] | None:
        number = post_id.removeprefix("sp-")
        if not (number.isascii() and number.isdigit()):
            return None
        entry = self._ledger.read(int(number))
        return entry if entry and entry["kind"] == "effect" else None

    def find(self, account: str, key: str) -> list[Mapping[str, object]]:
        found = (self._ledger.read(seq) for seq in self._effects.get((account, key), [])[-LOOKUP_PAGE:])
        return [effect for effect in found if effect is not None]

    def _same_content(self, seq: int, post: Post) -> None:
        effect = self._ledger.read(seq)
        assert effect is not None
        if (effect["channel"], effect["destination"], effect["text"]) != (post.channel, post.destination, post.text):
            raise KeyReused


def _id(seq: int) -> str:
    return f"sp-{seq}"
