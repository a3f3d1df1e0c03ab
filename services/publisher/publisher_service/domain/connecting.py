"""Connecting an account by a visit to the provider: what a person has granted there, for an authorization code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from publisher_service.domain.account import SocialAccount
from publisher_service.domain.credentials import Credentials
from servicekit.faults import InvalidField, NotFound, Refused
from servicekit.record import record

SESSION_LIFE: Final = timedelta(minutes=10)


class SessionState(StrEnum):
    STARTED = "STARTED"
    # A process exchanges the code, or died while it did: the code is not presented again.
    EXCHANGING = "EXCHANGING"
    # What was granted is kept, sealed, until a call has stored an account.
    GRANTED = "GRANTED"
    ENDED = "ENDED"


@record(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An account that the person has granted access to."""

    external_account_id: str
    name: str
    # Empty: all that the provider offers.
    channels: tuple[str, ...] = ()
    credentials: Credentials
    expires_in: timedelta | None = None
    refresh_expires_in: timedelta | None = None


@record(frozen=True, slots=True, kw_only=True)
class Offered:
    """A candidate as people see it, without its secrets."""

    external_account_id: str
    name: str
    channels: tuple[str, ...]


@record(frozen=True, slots=True, kw_only=True)
class Grant:
    candidates: Sequence[Candidate]
    scopes: tuple[str, ...] = ()


@record(frozen=True, slots=True, kw_only=True)
class GrantRefused:
    """The provider does not take the code, and will not."""

    message: str


@record(frozen=True, slots=True, kw_only=True)
class GrantDelayed:
    """Nobody knows whether the code was taken; with `is_unused` it certainly was not, and may be presented again."""

    message: str
    is_unused: bool = False


GrantAnswer = Grant | GrantRefused | GrantDelayed
GRANT_ANSWERS: Final = (Grant, GrantRefused, GrantDelayed)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSession:
    """A request to begin a visit to the provider; an empty account id is generated at its end."""

    organization_id: str
    provider: str
    redirect_uri: str
    account_id: str
    display_name: str
    channels: tuple[str, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A visit that was begun. The state that names it is known only to who began it: its digest is stored."""

    wanted: WantedSession
    state: SessionState
    expire_time: datetime
    # When the exchange of the code has certainly ended.
    exchange_end: datetime | None = None
    # The verifier, then the grant.
    sealed: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedSession:
    """The answer to who begins a visit. The state is a secret until the provider sends it back."""

    authorization_url: str
    state: str
    expire_time: datetime

    def __repr__(self) -> str:
        return "StartedSession(***)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """The return from a visit: what the provider has sent back, and the account that is meant."""

    state: str
    code: str
    external_account_id: str

    def __repr__(self) -> str:
        return "Return(***)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSession:
    """The account that was connected; or else those among which a call has to choose."""

    account: SocialAccount | None = None
    candidates: Sequence[Offered] = ()


def session_place(organization_id: str, digest: bytes) -> str:
    """Returns the place to which the secrets of a visit are bound."""
    return f"connect_session|{organization_id}|{digest.hex()}"


def require_open(session: Session | None, *, now: datetime) -> Session:
    """Returns a session that may go on; raises why it may not."""
    if session is None:
        raise NotFound("STATE_NOT_FOUND", "no visit to a provider was begun with this state, or long ago")
    if session.state is SessionState.ENDED:
        raise Refused("STATE_USED", "the visit with this state has ended; begin another one with StartConnect")
    if session.expire_time <= now:
        raise Refused("STATE_EXPIRED", "the visit with this state was begun too long ago; begin another one")
    return session


def chosen(grant: Grant, external_account_id: str) -> Candidate | None:
    """Returns the account to connect; None if several were granted and the call names none."""
    if not grant.candidates:
        raise Refused("NO_ACCOUNT_GRANTED", "the person has granted access to no account")
    if not external_account_id:
        return grant.candidates[0] if len(grant.candidates) == 1 else None
    for candidate in grant.candidates:
        if candidate.external_account_id == external_account_id:
            return candidate
    raise InvalidField("external_account_id", "is none of the accounts that were granted", reason="ACCOUNT_NOT_GRANTED")
