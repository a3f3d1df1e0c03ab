"""A social account: who posts, where, and whether it can."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from channels import Action
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import CredentialsState, Lifetime
from servicekit.faults import Conflict, NotFound


class AccountState(StrEnum):
    CONNECTED = "CONNECTED"
    DISCONNECTED = "DISCONNECTED"


class AccountReason(StrEnum):
    """The reason why an account cannot post."""

    NONE = ""
    CREDENTIALS_REFUSED = "CREDENTIALS_REFUSED"
    # Nothing could renew them.
    CREDENTIALS_EXPIRED = "CREDENTIALS_EXPIRED"
    # Of a connected account, whose posts wait: the provider has refused the credentials, and they are being refreshed.
    CREDENTIALS_REFRESHING = "CREDENTIALS_REFRESHING"
    DISCONNECTED_BY_REQUEST = "DISCONNECTED_BY_REQUEST"


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
    # Not secret: the address of a server, for example.
    settings: Mapping[str, str] = field(default_factory=dict)
    # None: a release that did not follow the life of credentials has connected it.
    credentials: CredentialsState | None = None
    # The daily caps of this account alone.
    daily_caps: Mapping[Action, int] = field(default_factory=dict)

    @property
    def etag(self) -> str:
        """A digest of what people set: whether the account is connected does not change it."""
        caps = sorted((action.value, cap) for action, cap in self.daily_caps.items())
        return hashlib.sha256(repr((self.display_name, self.channels, caps)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountChange:
    """A request to change what an account is set to: None leaves it, and an empty etag is no precondition."""

    organization_id: str
    account_id: str
    display_name: str | None = None
    # Empty: all that the provider offers.
    channels: tuple[str, ...] | None = None
    # Empty: the defaults.
    daily_caps: Mapping[Action, int] | None = None
    allow_below_used: bool = False
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A request to connect an account; an empty id is generated.

    Without channels a known account keeps those that it has, and a new one gets all of the provider's.
    """

    organization_id: str
    account_id: str
    provider: str
    external_account_id: str
    display_name: str
    channels: tuple[str, ...]
    credentials: Credentials
    lifetime: Lifetime = field(default_factory=Lifetime)
    # Empty: a known account keeps those that it has.
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnection:
    """A disconnected account, and its post jobs that are being sent or may be out."""

    account: SocialAccount
    in_flight: tuple[str, ...]


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


def refreshing(account: SocialAccount, error_message: str, *, now: datetime) -> SocialAccount:
    """Returns a connected account whose posts wait for other credentials than those that the provider has refused."""
    reason = AccountReason.CREDENTIALS_REFRESHING
    return replace(
        account, state_reason=reason, error_message=error_message, version=account.version + 1, update_time=now
    )


def renewed(account: SocialAccount, *, now: datetime) -> SocialAccount:
    """Returns a connected account whose posts may go on."""
    reason = AccountReason.NONE
    return replace(account, state_reason=reason, error_message="", version=account.version + 1, update_time=now)


def disconnected_by_request(account: SocialAccount, note: str, *, now: datetime) -> SocialAccount:
    """Returns the account disconnected; the same one if it is already."""
    if account.state == AccountState.DISCONNECTED:
        return account
    return disconnected(account, AccountReason.DISCONNECTED_BY_REQUEST, note, now=now)


def changed(account: SocialAccount, change: AccountChange, *, now: datetime) -> SocialAccount:
    """Returns the account as it is to be set; the same one if nothing changes. Raises ETAG_MISMATCH."""
    if change.etag and change.etag != account.etag:
        raise Conflict(
            "ETAG_MISMATCH",
            "the account has been changed since it was read",
            metadata={"social_account_id": account.id, "etag": account.etag},
        )
    after = replace(
        account,
        display_name=account.display_name if change.display_name is None else change.display_name,
        channels=account.channels if change.channels is None else change.channels,
        daily_caps=account.daily_caps if change.daily_caps is None else change.daily_caps,
    )
    return account if after == account else replace(after, version=account.version + 1, update_time=now)


def require_account(account: SocialAccount | None, account_id: str) -> SocialAccount:
    """Returns the account; raises ACCOUNT_NOT_FOUND if there is none."""
    if account is None:
        raise NotFound(
            "ACCOUNT_NOT_FOUND", "there is no such social account", metadata={"social_account_id": account_id}
        )
    return account
