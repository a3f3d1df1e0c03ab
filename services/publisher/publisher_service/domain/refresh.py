"""The life of an account's credentials: when they are refreshed, when somebody is warned, and when they are over.

Each refresh, connection or disconnection begins a generation. A number guards what is recorded: an answer about an
older generation changes nothing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from publisher_service.domain.credentials import Credentials
from servicekit.record import record

NOTICE: Final = timedelta(days=7)
"""How long before their end somebody hears of credentials that only a person can renew."""
PATIENCE: Final = timedelta(minutes=15)
"""How long posts wait for a refresh that fails again and again before somebody hears of it."""
_MOST_AHEAD: Final = timedelta(days=7)
_SHARE: Final = 5  # of a life, the last fifth is ahead
_JITTER: Final = 10  # a tenth of that
_FIRST_WAIT: Final = timedelta(seconds=5)
_LONGEST_WAIT: Final = timedelta(hours=1)
# While posts wait for the refresh.
_LONGEST_URGENT_WAIT: Final = timedelta(minutes=1)
# Credentials that are refused so soon after a refresh that a refusal had asked for are not refreshed once more.
_FRESH: Final = timedelta(hours=1)
_LONGEST_MESSAGE: Final = 500
_AT_ONCE: Final = datetime(1970, 1, 1, tzinfo=UTC)
# What counts down may be said a little differently each time.
_SAME_END: Final = timedelta(days=1)


@record(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The next credentials, and how long they and what renews them last; None: for as long as nobody revokes them."""

    credentials: Credentials
    expires_in: timedelta | None = None
    refresh_expires_in: timedelta | None = None


@record(frozen=True, slots=True, kw_only=True)
class RefreshRefused:
    """The provider will never refresh these credentials: a person has to connect the account again."""

    message: str


@record(frozen=True, slots=True, kw_only=True)
class RefreshDelayed:
    """Anything else: no answer, one that cannot be read, or "later". It proves nothing."""

    message: str
    retry_after: timedelta | None = None


RefreshAnswer = Refreshed | RefreshRefused | RefreshDelayed
REFRESH_ANSWERS: Final = (Refreshed, RefreshRefused, RefreshDelayed)


class JournalState(StrEnum):
    """State of a refresh in the journal."""

    # Recorded before the request. If nothing follows, the process died, or stood still, inside the call.
    INTENT = "INTENT"
    DONE = "DONE"
    REFUSED = "REFUSED"
    FAILED = "FAILED"


class Step(StrEnum):
    """The next thing to be done about credentials."""

    REFRESH = "REFRESH"
    WARN = "WARN"
    EXPIRE = "EXPIRE"
    REST = "REST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """The known facts about the credentials of a generation, without any secret."""

    expire_time: datetime | None = None
    # When that ends which gets the next access token.
    refresh_expire_time: datetime | None = None
    scopes: tuple[str, ...] = ()
    is_refreshable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsState:
    """The credentials of an account as people may see them, and what is to be done about them."""

    provider: str
    generation: int
    lifetime: Lifetime
    # Null while none is planned: nobody knows when the access token ends, or nothing can refresh it.
    refresh_time: datetime | None = None
    # When a process is to look at it; the end of the lease while one does.
    next_time: datetime | None = None
    lease_end: datetime | None = None
    # Counts the times that a process has taken it.
    number: int = 0
    # Attempts in a row that got no proper answer.
    failures: int = 0
    # The first of these.
    failing_since: datetime | None = None
    error: str = ""
    # The provider will not refresh this generation.
    is_refused: bool = False
    # The provider has refused the access token: posts wait for the refresh.
    is_urgent: bool = False
    # This generation came because the provider had refused the one before.
    is_forced: bool = False
    is_warned: bool = False
    last_refresh_time: datetime | None = None

    @property
    def can_refresh(self) -> bool:
        return self.lifetime.is_refreshable and not self.is_refused

    @property
    def end_time(self) -> datetime | None:
        """Returns when the account can post no more unless a person connects it again; None if that is not known."""
        return self.lifetime.refresh_expire_time if self.can_refresh else self.lifetime.expire_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Credentials that a process has taken, and what it needs to refresh them."""

    organization_id: str
    account_id: str
    state: CredentialsState
    step: Step
    external_account_id: str
    settings: Mapping[str, str]
    # As they are stored.
    sealed: bytes = field(repr=False)
    is_connected: bool
    # False once a release has connected the account that does not follow the life of credentials.
    is_known: bool
    take_time: datetime

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.account_id


def connected(
    known: CredentialsState | None,
    provider: str,
    lifetime: Lifetime,
    *,
    account: tuple[str, str],
    ahead: timedelta,
    now: datetime,
) -> CredentialsState:
    """Returns the state of credentials that somebody has just connected."""
    fresh = CredentialsState(
        provider=provider,
        generation=known.generation + 1 if known else 1,
        lifetime=lifetime,
        number=known.number if known else 0,
    )
    return _planned(fresh, account=account, ahead=ahead, now=now)


def at_rest(state: CredentialsState) -> CredentialsState:
    """Returns the state of an account that is disconnected: nothing is to be done until it is connected again."""
    return replace(state, refresh_time=None, next_time=None, lease_end=None, is_urgent=False)


def erased(state: CredentialsState) -> CredentialsState:
    """Returns the state of credentials that are gone, of which no answer may bring anything back."""
    if state.lifetime == Lifetime() and state.next_time is None:
        return state
    gone = replace(state, generation=state.generation + 1, lifetime=Lifetime(), error="", failures=0, is_refused=False)
    return replace(at_rest(gone), failing_since=None, is_forced=False, is_warned=False, last_refresh_time=None)


def step_at(state: CredentialsState, now: datetime) -> Step:
    """Returns what is to be done now."""
    if state.refresh_time is not None and state.refresh_time <= now:
        return Step.REFRESH
    if not state.can_refresh and _is_over(state.lifetime.expire_time, now):
        return Step.EXPIRE
    if _is_over(_warn_time(state), now):
        return Step.WARN
    return Step.REST


def is_failing(state: CredentialsState, *, now: datetime) -> bool:
    """Returns whether the account cannot post because no attempt at a refresh gets a proper answer."""
    return _is_over(_failing_time(state), now)


def refreshed(
    state: CredentialsState,
    answer: Refreshed,
    *,
    account: tuple[str, str],
    ahead: timedelta,
    asked: datetime,
    now: datetime,
) -> CredentialsState:
    """Returns the state of the next generation. What the provider says of its life counts from the question."""
    lifetime = replace(
        state.lifetime,
        expire_time=_after(asked, answer.expires_in),
        # Providers that say nothing of it have not changed it.
        refresh_expire_time=_after(asked, answer.refresh_expires_in) or state.lifetime.refresh_expire_time,
        is_refreshable=True,
    )
    fresh = CredentialsState(
        provider=state.provider,
        generation=state.generation + 1,
        lifetime=lifetime,
        number=state.number,
        is_forced=state.is_urgent,
        last_refresh_time=now,
    )
    # Of the end of a refresh token that no refresh puts off, somebody hears once. Who has only heard of failures of the
    # refresh still has to.
    is_same_end = _is_same(state.end_time, fresh.end_time) and _is_over(_notice_time(fresh), now)
    fresh = replace(fresh, is_warned=state.is_warned and is_same_end)
    return _planned(fresh, account=account, ahead=ahead, now=now)


def delayed(state: CredentialsState, answer: RefreshDelayed, *, now: datetime, draw: float) -> CredentialsState:
    """Returns the state after an attempt that proved nothing. `draw` in [0, 1) spreads the next ones."""
    failures = state.failures + 1
    longest = _LONGEST_URGENT_WAIT if state.is_urgent else _LONGEST_WAIT
    wait = min(_FIRST_WAIT * 2 ** min(failures - 1, 20), longest) * (0.5 + draw / 2)
    later = replace(
        state,
        refresh_time=now + max(wait, answer.retry_after or timedelta(0)),
        lease_end=None,
        failures=failures,
        failing_since=state.failing_since if state.failures and state.failing_since else now,
        error=answer.message[:_LONGEST_MESSAGE],
    )
    return _waiting(later)


def refused(state: CredentialsState, answer: RefreshRefused, *, now: datetime) -> CredentialsState:
    """Returns the state once the provider has refused: somebody is warned at once, while the access token works."""
    over = replace(
        state,
        refresh_time=None,
        lease_end=None,
        failures=0,
        failing_since=None,
        error=answer.message[:_LONGEST_MESSAGE],
        is_refused=True,
        is_warned=False,
    )
    return replace(over, next_time=now)


def warned(state: CredentialsState) -> CredentialsState:
    return _waiting(replace(state, is_warned=True, lease_end=None))


def looked_at(state: CredentialsState) -> CredentialsState:
    """Returns the state after a look that found nothing to do."""
    return _waiting(replace(state, lease_end=None))


def may_be_forced(state: CredentialsState, *, now: datetime) -> bool:
    """Returns whether a refusal of the access token is answered by a refresh, and not by a disconnection."""
    if state.is_urgent:
        return True
    is_fresh = state.last_refresh_time is not None and now - state.last_refresh_time < _FRESH
    return state.can_refresh and not (state.is_forced and is_fresh)


def forced(state: CredentialsState, *, now: datetime) -> CredentialsState:
    """Returns the state in which posts wait for a refresh; one that is in flight is the one that they wait for."""
    if state.is_urgent:
        return state
    urgent = replace(state, is_urgent=True, refresh_time=now)
    return urgent if state.lease_end is not None and state.lease_end > now else replace(urgent, next_time=now)


def asked_now(state: CredentialsState, *, now: datetime) -> CredentialsState:
    """Returns the state in which a refresh is due at once; one that is in flight is not begun again."""
    if state.lease_end is not None and state.lease_end > now:
        return state
    return replace(state, refresh_time=now, next_time=now, lease_end=None)


def is_settled(state: CredentialsState, asked: CredentialsState) -> bool:
    """Returns whether the refresh has ended, without the next generation, that was in flight or due when `asked`."""
    last = asked.number if asked.lease_end is not None else asked.number + 1
    return state.lease_end is None and state.number >= last


def refresh_time(lifetime: Lifetime, *, account: tuple[str, str], ahead: timedelta, now: datetime) -> datetime | None:
    """Returns when to refresh: the last fifth of a life ahead of its end, at most 7 days, at least `ahead`.

    Each account does so a little earlier, by an amount of its own, so that those that were connected together do not
    all ask at once. Never in the first half of a life.
    """
    if not lifetime.is_refreshable or lifetime.expire_time is None:
        return None
    life = max(lifetime.expire_time - now, timedelta(0))
    lead = max(min(life / _SHARE, _MOST_AHEAD), ahead)
    lead += lead * _place(account) / _JITTER
    return lifetime.expire_time - min(lead, life / 2)


def missing_scopes(wanted: Sequence[str], granted: Sequence[str]) -> tuple[str, ...]:
    return tuple(scope for scope in wanted if scope not in granted)


def _planned(state: CredentialsState, *, account: tuple[str, str], ahead: timedelta, now: datetime) -> CredentialsState:
    return _waiting(replace(state, refresh_time=refresh_time(state.lifetime, account=account, ahead=ahead, now=now)))


def _waiting(state: CredentialsState) -> CredentialsState:
    """Returns the state with the time of the next step."""
    times = [state.refresh_time, _warn_time(state)]
    if not state.can_refresh:
        times.append(state.lifetime.expire_time)
    return replace(state, next_time=min((time for time in times if time is not None), default=None))


def _warn_time(state: CredentialsState) -> datetime | None:
    if state.is_warned:
        return None
    if state.is_refused:
        return _AT_ONCE
    times = [time for time in (_notice_time(state), _failing_time(state)) if time is not None]
    return min(times, default=None)


def _notice_time(state: CredentialsState) -> datetime | None:
    return None if state.end_time is None else state.end_time - NOTICE


def _failing_time(state: CredentialsState) -> datetime | None:
    """Returns when somebody hears that the account cannot post because of failures; None if it can post."""
    if not (state.can_refresh and state.failures and state.failing_since):
        return None
    if state.is_urgent:
        return state.failing_since + PATIENCE
    end = state.lifetime.expire_time
    return None if end is None else max(state.failing_since, end) + PATIENCE


def _is_over(time: datetime | None, now: datetime) -> bool:
    return time is not None and time <= now


def _is_same(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and abs(one - other) < _SAME_END


def _after(moment: datetime, duration: timedelta | None) -> datetime | None:
    return None if duration is None else moment + duration


def _place(account: tuple[str, str]) -> float:
    """Returns a number in [0, 1) that is the account's own."""
    digest = hashlib.sha256("/".join(account).encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48
