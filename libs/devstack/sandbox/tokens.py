"""Tokens of the sandbox provider that expire: families of an access token and a refresh token, in the ledger.

A token that was not issued here, such as `sandbox-x`, is valid forever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from devstack.sandbox.checks import Refusal
from devstack.sandbox.journal import Journal

_ACCESS = "sandbox-family-"


@dataclass(slots=True, kw_only=True)
class _Family:
    account: str
    seconds: float
    rotating: bool
    generation: int = 0
    revoked: bool = False
    ends: dict[int, datetime]


class Tokens:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._families: dict[int, _Family] = {}
        for entry in journal.ledger.entries():
            if entry["kind"] == "token":
                self._replay(entry)

    def issue(self, account: str, *, seconds: float, rotating: bool) -> dict[str, object]:
        """Begins a family. A rotating one has a new refresh token after each use, and the old ones revoke it."""
        family = len(self._families) + 1
        return self._record(family, 0, account, seconds=seconds, rotating=rotating)

    def refresh(self, token: str) -> dict[str, object]:
        """Returns the next pair; raises Refusal, and revokes the family if the token was used before."""
        number, generation = _numbers(token, "refresh-")
        family = self._families.get(number)
        if family is None or family.revoked or generation > family.generation:
            raise Refusal(400, "INVALID_GRANT", "this refresh token is not valid")
        if family.rotating and generation != family.generation:
            family.revoked = True
            self._note(number, "revoked", generation)
            raise Refusal(400, "INVALID_GRANT", "this refresh token was used before: its family is revoked")
        return self._record(
            number, family.generation + 1, family.account, seconds=family.seconds, rotating=family.rotating
        )

    def revoke(self, account: str) -> None:
        """Revokes all families of an account."""
        for number, family in self._families.items():
            if family.account == account and not family.revoked:
                family.revoked = True
                self._note(number, "revoked", family.generation)

    def check(self, token: str) -> None:
        """Raises Refusal if the access token was issued here and is no longer valid."""
        if not token.startswith(_ACCESS):
            return
        number, generation = _numbers(token, _ACCESS)
        family = self._families.get(number)
        end = family.ends.get(generation) if family else None
        if family is None or family.revoked or end is None:
            raise Refusal(401, "UNAUTHENTICATED", "this token is not valid")
        if end <= self._journal.now():
            raise Refusal(401, "TOKEN_EXPIRED", "this token has expired")

    def _record(
        self, number: int, generation: int, account: str, *, seconds: float, rotating: bool
    ) -> dict[str, object]:
        entry = {
            "kind": "token",
            "time": self._journal.time(),
            "event": "refreshed" if generation else "issued",
            "account": account,
            "family": number,
            "generation": generation,
            "seconds": seconds,
            "rotating": rotating,
        }
        self._replay(entry)
        self._journal.write(entry)
        refresh = f"refresh-{number}-{generation if rotating else 0}"
        return {"access_token": f"{_ACCESS}{number}-{generation}", "refresh_token": refresh, "expires_in": seconds}

    def _note(self, number: int, event: str, generation: int) -> None:
        line = {"kind": "token", "time": self._journal.time(), "event": event, "family": number}
        self._journal.write(line | {"account": self._families[number].account, "generation": generation})

    def _replay(self, entry: Mapping[str, object]) -> None:
        number, generation = int(str(entry["family"])), int(str(entry["generation"]))
        if entry["event"] == "revoked":
            self._families[number].revoked = True
            return
        seconds = float(str(entry["seconds"]))
        family = self._families.setdefault(
            number,
            _Family(account=str(entry["account"]), seconds=seconds, rotating=bool(entry["rotating"]), ends={}),
        )
        family.generation = generation
        family.ends[generation] = datetime.fromisoformat(str(entry["time"])) + timedelta(seconds=seconds)


def _numbers(token: str, prefix: str) -> tuple[int, int]:
    family, _, generation = token.removeprefix(prefix).partition("-")
    return (int(family), int(generation)) if family.isdecimal() and generation.isdecimal() else (0, 0)
