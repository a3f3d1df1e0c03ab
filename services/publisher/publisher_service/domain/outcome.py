"""Outcomes of an attempt, sorted by the only question that matters: may the post be out?"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from servicekit.record import record

CONTENT_UNREADABLE: Final = "CONTENT_UNREADABLE"
"""The reason of a refusal of our own: the stored content cannot be decoded. No provider has seen it."""


class Level(StrEnum):
    """Level on which a provider limits posts."""

    # All accounts of the provider: the limit is that of our application.
    APPLICATION = "APPLICATION"
    ACCOUNT = "ACCOUNT"
    # One channel of an account.
    CHANNEL = "CHANNEL"


@record(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit as an answer shows it: how many posts are left, and how soon there are new ones."""

    level: Level
    remaining: int
    reset_after: timedelta


@record(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The provider has the post, under this name; it may say when it went out."""

    external_id: str
    external_url: str
    publish_time: datetime | None = None
    quotas: Sequence[Quota] = ()
    # The post was recognized by its text, so it may be that of another job.
    is_by_text: bool = False
    # The name of this one even so, if what was prepared for it proves by itself that it is out.
    own_id: str = ""


@record(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The provider refused this content for good: nothing is out."""

    reason: str
    message: str
    # The page, chat, address or contact wants no posts of this account.
    peer_blocked: bool = False
    # The same is done already, which says nothing against the page, chat, address or contact.
    is_repeat: bool = False


@record(frozen=True, slots=True, kw_only=True)
class AuthRefused:
    """The provider refused the credentials: this request has put nothing out, and costs no attempt."""

    message: str


@record(frozen=True, slots=True, kw_only=True)
class NotSent:
    """No byte of the request has left, or the provider said "later" before it did anything."""

    reason: str
    message: str
    # No connection to the provider was made, which any other account would find too. Never said of media, nor of a
    # server that a tenant names: no tenant can close a provider for the others.
    is_unreachable: bool = False


@record(frozen=True, slots=True, kw_only=True)
class NotBegun:
    """We did not begin the request, for a reason of our own. Costs no attempt."""

    reason: str
    message: str


@record(frozen=True, slots=True, kw_only=True)
class RateLimited:
    """The provider said "later", and how much later. Costs no attempt."""

    message: str
    retry_after: timedelta
    level: Level = Level.ACCOUNT
    quotas: Sequence[Quota] = ()


@record(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """The request has left, and no answer proves its outcome."""

    reason: str
    message: str
    quotas: Sequence[Quota] = ()


Outcome = Accepted | Rejected | AuthRefused | NotSent | NotBegun | RateLimited | Ambiguous


@record(frozen=True, slots=True, kw_only=True)
class Found:
    """A look at the provider proves that the post is out; `is_by_text` and `own_id` are those of `Accepted`."""

    external_id: str
    external_url: str
    publish_time: datetime | None = None
    is_by_text: bool = False
    own_id: str = ""


@record(frozen=True, slots=True, kw_only=False)
class Absent:
    """A look at the provider proves that the post is not out and will not appear."""

    # What was prepared for the post cannot be published any more.
    handle_is_void: bool = False


@record(frozen=True, slots=True, kw_only=True)
class NoProof:
    """The look itself failed; it proves nothing."""

    message: str


@record(frozen=True, slots=True, kw_only=True)
class Repeatable:
    """Nothing shows whether the post is out, but a repeat does no harm: the provider or the receiver ignores it."""

    message: str


Finding = Found | Absent | Repeatable | NoProof | AuthRefused
OUTCOMES: Final = (Accepted, Rejected, AuthRefused, NotSent, NotBegun, RateLimited, Ambiguous)
FINDINGS: Final = (Found, Absent, Repeatable, NoProof, AuthRefused)

# Labels of metrics: stable, no matter how the classes are renamed.
_LABELS: Final[Mapping[type, str]] = {
    Accepted: "accepted",
    Rejected: "rejected",
    AuthRefused: "auth_refused",
    NotSent: "not_sent",
    NotBegun: "not_tried",
    RateLimited: "rate_limited",
    Ambiguous: "ambiguous",
    Found: "found",
    Absent: "absent",
    Repeatable: "repeatable",
    NoProof: "no_proof",
}


def label(value: Outcome | Finding) -> str:
    return _LABELS[type(value)]


OUTCOME_LABELS: Final = tuple(_LABELS[kind] for kind in OUTCOMES)
FINDING_LABELS: Final = tuple(_LABELS[kind] for kind in FINDINGS)
