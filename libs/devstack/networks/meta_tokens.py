"""Tokens of the fakes of Meta's networks: they expire, and those of pages die with the user's."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

SHORT = timedelta(hours=1)
LONG = timedelta(days=60)
# A token that is younger cannot be refreshed.
REFRESHABLE = timedelta(hours=24)
OPEN_PREFIX = "sandbox-"
"""A token that begins so is good for every account and never expires; `sandbox-revoked...` is not."""
_REVOKED_PREFIX = "sandbox-revoked"
EXPIRED, INVALID, PASSWORD_CHANGED = 463, 467, 460


class Kind(StrEnum):
    USER = "USER"
    PAGE = "PAGE"


@dataclass(slots=True)
class Token:
    value: str
    kind: Kind
    user: str
    # The page or the Instagram account that it is for; empty: all of the user.
    account: str
    issued: datetime
    expires: datetime | None
    # The subcode with which it is refused.
    refused_with: int | None = None


class Tokens:
    def __init__(self) -> None:
        self._tokens: dict[str, Token] = {}

    def issue(
        self, user: str, now: datetime, *, life: timedelta | None, kind: Kind = Kind.USER, account: str = ""
    ) -> Token:
        value = f"EAA{kind.value[0]}{len(self._tokens) + 1:08d}{user}"
        token = Token(value, kind, user, account, now, now + life if life is not None else None)
        self._tokens[value] = token
        return token

    def get(self, value: str) -> Token | None:
        return self._tokens.get(value)

    def subcode(self, value: str, account: str, now: datetime) -> int | None:
        """Returns the subcode with which a token is refused for an account; None if it is good."""
        if value.startswith(OPEN_PREFIX):
            return INVALID if value.startswith(_REVOKED_PREFIX) else None
        token = self._tokens.get(value)
        if token is None:
            return INVALID
        if token.refused_with is not None:
            return token.refused_with
        if token.expires is not None and token.expires <= now:
            return EXPIRED
        return None if not account or token.account in ("", account) else INVALID

    def revoke(self, user: str, subcode: int = PASSWORD_CHANGED) -> None:
        """Ends all tokens of a user, and those of the user's pages."""
        for token in self._of(user):
            token.refused_with = subcode

    def _of(self, user: str) -> Iterator[Token]:
        return (token for token in self._tokens.values() if token.user == user)
