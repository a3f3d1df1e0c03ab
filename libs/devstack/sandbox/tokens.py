"""Tokens of the sandbox provider that expire: families of an access token and a refresh token, in the ledger.

A token that was not issued here, such as `sandbox-x`, is valid forever.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta

from devstack.sandbox.checks import Refusal
from devstack.sandbox.journal import Journal

_ACCESS = "sandbox-family-"
_REFRESH = "refresh-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a family of tokens."""

    seconds: float
    """Life of an access token."""
    rotating: bool = False
    """A refresh token is good for one use: a second use revokes the family."""
    grace: float = 0.0
    """Seconds for which the last refresh token that was used gets the same answer again."""
    refreshable: bool = True
    """False: there are no refresh tokens."""
    refresh_seconds: float = 0.0
    """Life of the refresh tokens, counted from the first one; 0: they have no end."""


@dataclass(slots=True, kw_only=True)
class _Family:
    account: str
    terms: Terms
    begin: datetime
    generation: int = 0
    revoked: bool = False
    times: dict[int, datetime] = field(default_factory=dict)


class Tokens:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._families: dict[int, _Family] = {}
        for entry in journal.ledger.entries():
            if entry["kind"] == "token":
                self._replay(entry)

    def issue(self, account: str, terms: Terms) -> dict[str, object]:
        """Begins a family and returns its first pair."""
        return self._record(len(self._families) + 1, 0, account, terms)

    def presented(self, token: str) -> tuple[str, str]:
        """Returns the account of a refresh token, and its name in the ledger: family and generation."""
        number, generation = _numbers(token, _REFRESH)
        family = self._families.get(number)
        return (family.account, f"{number}-{generation}") if family else ("", "")

    def refresh(self, token: str) -> dict[str, object]:
        """Returns the next pair; raises Refusal, and revokes the family if the token was used before."""
        number, generation = _numbers(token, _REFRESH)
        family = self._families.get(number)
        if family is None or family.revoked or generation > family.generation or not family.terms.refreshable:
            raise Refusal(400, "INVALID_GRANT", "this refresh token is not valid")
        if family.terms.refresh_seconds and self._left(family) <= 0:
            raise Refusal(400, "INVALID_GRANT", "this refresh token has expired")
        if family.terms.rotating and generation != family.generation:
            if generation == family.generation - 1 and self._is_graceful(family):
                return self._pair(number, family)
            family.revoked = True
            self._note(number, "revoked", generation)
            raise Refusal(400, "INVALID_GRANT", "this refresh token was used before: its family is revoked")
        return self._record(number, family.generation + 1, family.account, family.terms)

    def revoke(self, account: str) -> None:
        """Revokes all families of an account."""
        for number, family in self._families.items():
            if family.account == account:
                self._revoke(number, family)

    def revoke_families(self, numbers: list[int]) -> None:
        for number in numbers:
            self._revoke(number, self._families[number])

    def family_of(self, pair: Mapping[str, object]) -> int:
        return _numbers(str(pair["access_token"]), _ACCESS)[0]

    def check(self, token: str) -> None:
        """Raises Refusal if the access token was issued here and is no longer valid."""
        if not token.startswith(_ACCESS):
            return
        number, generation = _numbers(token, _ACCESS)
        family = self._families.get(number)
        begin = family.times.get(generation) if family else None
        if family is None or family.revoked or begin is None:
            raise Refusal(401, "UNAUTHENTICATED", "this token is not valid")
        if begin + timedelta(seconds=family.terms.seconds) <= self._journal.now():
            raise Refusal(401, "TOKEN_EXPIRED", "this token has expired")

    def _is_graceful(self, family: _Family) -> bool:
        return self._journal.now() < family.times[family.generation] + timedelta(seconds=family.terms.grace)

    def _left(self, family: _Family) -> float:
        end = family.begin + timedelta(seconds=family.terms.refresh_seconds)
        return (end - self._journal.now()).total_seconds()

    def _revoke(self, number: int, family: _Family) -> None:
        if not family.revoked:
            family.revoked = True
            self._note(number, "revoked", family.generation)

    def _record(self, number: int, generation: int, account: str, terms: Terms) -> dict[str, object]:
        entry = {
            "kind": "token",
            "time": self._journal.time(),
            "event": "refreshed" if generation else "issued",
            "account": account,
            "family": number,
            "generation": generation,
            **asdict(terms),
        }
        self._replay(entry)
        self._journal.write(entry)
        return self._pair(number, self._families[number])

    def _pair(self, number: int, family: _Family) -> dict[str, object]:
        terms = family.terms
        pair: dict[str, object] = {
            "access_token": f"{_ACCESS}{number}-{family.generation}",
            "expires_in": terms.seconds,
        }
        if terms.refreshable:
            pair["refresh_token"] = f"{_REFRESH}{number}-{family.generation if terms.rotating else 0}"
        if terms.refresh_seconds:
            pair["refresh_expires_in"] = self._left(family)
        return pair

    def _note(self, number: int, event: str, generation: int) -> None:
        line = {"kind": "token", "time": self._journal.time(), "event": event, "family": number}
        self._journal.write(line | {"account": self._families[number].account, "generation": generation})

    def _replay(self, entry: Mapping[str, object]) -> None:
        number, generation = int(str(entry["family"])), int(str(entry["generation"]))
        if entry["event"] == "revoked":
            self._families[number].revoked = True
            return
        time = datetime.fromisoformat(str(entry["time"]))
        terms = Terms(**{each.name: entry[each.name] for each in fields(Terms) if each.name in entry})  # type: ignore[arg-type]
        family = self._families.setdefault(number, _Family(account=str(entry["account"]), terms=terms, begin=time))
        family.generation = generation
        family.times[generation] = time


def terms_from(facts: Mapping[str, object]) -> Terms:
    """Raises ValueError if they name no life of an access token."""
    match facts:
        case {"seconds": int() | float()}:
            known = {each.name for each in fields(Terms)}
            return Terms(**{name: value for name, value in facts.items() if name in known})  # type: ignore[arg-type]
        case _:
            raise ValueError("name the seconds that an access token lasts")


def _numbers(token: str, prefix: str) -> tuple[int, int]:
    family, _, generation = token.removeprefix(prefix).partition("-")
    return (int(family), int(generation)) if family.isdecimal() and generation.isdecimal() else (0, 0)
