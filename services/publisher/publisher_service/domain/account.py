"""A social account: who posts, where, and whether it can."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from servicekit.faults import NotFound


class AccountState(StrEnum):
    CONNECTED = "CONNECTED"
    DISCONNECTED = "DISCONNECTED"


class AccountReason(StrEnum):
    """The reason why an account is disconnected."""

    NONE = ""
    CREDENTIALS_REFUSED = "CREDENTIALS_REFUSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialAccount:
    organization_id: str
    id: str
    provider: str
    external_account_id: str
    display_name: str
    channels: tuple[str, ...]
    # An `AccountState` and an `AccountReason`, or plain text that only a newer release knows: compare by value.
    state: str
    state_reason: str = AccountReason.NONE
    error_message: str = ""
    disconnect_time: datetime | None = None
    version: int
    create_time: datetime
    update_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A request to connect an account; an empty id is generated, and no channels means all of the provider's."""

    organization_id: str
    account_id: str
    provider: str
    external_account_id: str
    display_name: str
    channels: tuple[str, ...]
    access_token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFilter:
    """Selects accounts of an organization; empty fields admit all."""

    organization_id: str
    states: tuple[AccountState, ...] = ()
    provider: str = ""


def disconnected(account: SocialAccount, reason: AccountReason, error_message: str, *, now: datetime) -> SocialAccount:
    """Returns the account in the state in which it posts no more."""
    return replace(
        account,
        state=AccountState.DISCONNECTED,
        state_reason=reason,
        error_message=error_message,
        disconnect_time=now,
        version=account.version + 1,
        update_time=now,
    )


def require_account(account: SocialAccount | None, account_id: str) -> SocialAccount:
    """Returns the account; raises ACCOUNT_NOT_FOUND if there is none."""
    if account is None:
        raise NotFound(
            "ACCOUNT_NOT_FOUND", "there is no such social account", metadata={"social_account_id": account_id}
        )
    return account
