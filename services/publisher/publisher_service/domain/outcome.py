"""What came of one try, seen from the only question that matters: may the post be out there?"""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The provider has it, and says under which name."""

    external_id: str
    external_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The provider refused this content for good: nothing is out there."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthRefused:
    """The provider refused the credentials: nothing is out there, nor will be until the account is connected."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """Not one byte of the request left, or the provider said "later" before it did anything."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTried:
    """We did not begin the request, for a reason of our own; this costs no attempt."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimited:
    """The provider said "later" and for how long; this costs no attempt."""

    message: str
    retry_after: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """The request left and no answer proves what became of it."""

    reason: str
    message: str


Outcome = Accepted | Rejected | AuthRefused | NotSent | NotTried | RateLimited | Ambiguous


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A look at the provider proves that the post is there."""

    external_id: str
    external_url: str


@dataclass(frozen=True, slots=True)
class Absent:
    """A look at the provider proves that the post is not there and will not appear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProof:
    """The look itself failed; it proves nothing."""

    message: str


Finding = Found | Absent | NoProof
