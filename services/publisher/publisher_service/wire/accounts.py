"""Social accounts: the calls of SocialAccountService, and the events about them."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from google.protobuf.message import Message

import channels
from postflow.publisher.v1 import publisher_events_pb2, social_account_pb2
from postflow.publisher.v1 import social_account_service_pb2 as pb
from publisher_service.domain.account import AccountChange, AccountState, Connection, Disconnection, SocialAccount
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import CredentialsState, Lifetime
from publisher_service.wire.posts import ACTIONS
from servicekit.faults import InvalidField
from servicekit.pg.outbox import Announcement
from servicekit.timestamps import moment, timestamp
from topology import events_subject

_SETTING = re.compile(r"[a-z][a-z0-9_]{0,63}")
_STATES: dict[str, social_account_pb2.SocialAccountState] = {
    AccountState.CONNECTED: social_account_pb2.SOCIAL_ACCOUNT_STATE_CONNECTED,
    AccountState.DISCONNECTED: social_account_pb2.SOCIAL_ACCOUNT_STATE_DISCONNECTED,
}


def connection_from(request: pb.ConnectAccountRequest) -> Connection:
    """Translates a request. Raises InvalidField for a name or token that no HTTP request can carry."""
    name = request.external_account_id
    if not name.isprintable() or name.strip(".") == "":
        raise InvalidField("external_account_id", "must be printable, and more than dots")
    return Connection(
        organization_id=request.organization_id,
        account_id=request.social_account_id,
        provider=request.provider,
        external_account_id=name,
        display_name=request.display_name,
        channels=normalised_channels(request.channels),
        credentials=_credentials_from(request.credentials),
        lifetime=Lifetime(
            expire_time=_moment(request.credentials, "expire_time"),
            refresh_expire_time=_moment(request.credentials, "refresh_expire_time"),
            scopes=tuple(dict.fromkeys(request.credentials.scopes)),
        ),
        settings=settings_from(request.settings),
    )


def _credentials_from(message: pb.Credentials) -> Credentials:
    secrets = {name: getattr(message, name) for name in ("access_token", "refresh_token", "user_token")}
    for name, secret in secrets.items():
        is_needed = name == "access_token"
        if (secret or is_needed) and not (secret.isascii() and secret.isprintable() and secret.strip()):
            raise InvalidField(f"credentials.{name}", "must be printable ASCII")
    return Credentials(**secrets)


def _moment(message: pb.Credentials, name: Literal["expire_time", "refresh_expire_time"]) -> datetime | None:
    return moment(getattr(message, name)) if message.HasField(name) else None


def settings_from(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the settings of a request. Raises InvalidField for a name that no provider has, or an odd value."""
    for name, value in settings.items():
        if not _SETTING.fullmatch(name):
            raise InvalidField("settings", "names have 1 to 64 of a-z, 0-9 and _, and begin with a letter")
        if not value.isprintable():
            raise InvalidField(f"settings.{name}", "must be printable")
    return dict(settings)


def account_states_from(numbers: Sequence[int]) -> tuple[AccountState, ...]:
    return tuple(state for state in AccountState if _STATES[state] in numbers)


def account_change_from(request: pb.UpdateAccountRequest) -> AccountChange:
    """Translates a request. Raises InvalidField for an unknown channel or action, and for an action named twice."""
    return AccountChange(
        organization_id=request.organization_id,
        account_id=request.social_account_id,
        display_name=request.display_name if request.HasField("display_name") else None,
        channels=normalised_channels(request.channels.channels, "channels.channels")
        if request.HasField("channels")
        else None,
        daily_caps=_caps_from(request.daily_caps.daily_caps) if request.HasField("daily_caps") else None,
        allow_below_used=request.allow_below_used,
        etag=request.etag,
    )


def update_account_response(account: SocialAccount) -> pb.UpdateAccountResponse:
    return pb.UpdateAccountResponse(social_account=social_account(account))


def connect_account_response(account: SocialAccount) -> pb.ConnectAccountResponse:
    return pb.ConnectAccountResponse(social_account=social_account(account))


def disconnect_account_response(gone: Disconnection) -> pb.DisconnectAccountResponse:
    return pb.DisconnectAccountResponse(
        social_account=social_account(gone.account), in_flight_post_job_ids=gone.in_flight
    )


def get_account_response(account: SocialAccount) -> pb.GetAccountResponse:
    return pb.GetAccountResponse(social_account=social_account(account))


def list_accounts_response(accounts: Sequence[SocialAccount], next_page_token: str) -> pb.ListAccountsResponse:
    return pb.ListAccountsResponse(social_accounts=map(social_account, accounts), next_page_token=next_page_token)


def social_account(account: SocialAccount) -> social_account_pb2.SocialAccount:
    return social_account_pb2.SocialAccount(
        id=account.id,
        provider=account.provider,
        external_account_id=account.external_account_id,
        display_name=account.display_name,
        channels=account.channels,
        state=_STATES.get(account.state, social_account_pb2.SOCIAL_ACCOUNT_STATE_UNSPECIFIED),
        state_reason=account.state_reason,
        error_message=account.error_message,
        version=account.version,
        create_time=timestamp(account.create_time),
        update_time=timestamp(account.update_time),
        disconnect_time=timestamp(account.disconnect_time),
        daily_caps=[
            social_account_pb2.DailyCap(action=ACTIONS[action], most=cap) for action, cap in account.daily_caps.items()
        ],
        etag=account.etag,
        credentials_info=None if account.credentials is None else _credentials_info(account.credentials),
        settings=account.settings,
    )


def _credentials_info(state: CredentialsState) -> social_account_pb2.CredentialsInfo:
    return social_account_pb2.CredentialsInfo(
        expire_time=timestamp(state.lifetime.expire_time),
        refresh_expire_time=timestamp(state.lifetime.refresh_expire_time),
        scopes=state.lifetime.scopes,
        is_refreshable=state.can_refresh,
        last_refresh_time=timestamp(state.last_refresh_time),
        next_refresh_time=timestamp(state.refresh_time),
        refresh_error=state.error,
        generation=state.generation,
    )


def account_connected(account: SocialAccount) -> Announcement:
    message = publisher_events_pb2.SocialAccountConnected(
        organization_id=account.organization_id, social_account=social_account(account)
    )
    return _about(account, message)


def account_disconnected(account: SocialAccount, error_message: str) -> Announcement:
    message = publisher_events_pb2.SocialAccountDisconnected(
        organization_id=account.organization_id, social_account=social_account(account), error_message=error_message
    )
    return _about(account, message)


def account_expires_soon(account: SocialAccount, end: datetime | None, *, is_failing: bool) -> Announcement:
    message = publisher_events_pb2.SocialAccountExpiresSoon(
        organization_id=account.organization_id,
        social_account=social_account(account),
        expire_time=None if is_failing else timestamp(end),
        version=account.version,
        is_failing=is_failing,
    )
    return _about(account, message)


def _about(account: SocialAccount, message: Message) -> Announcement:
    return Announcement(
        subject=events_subject("publisher", "social_account"),
        organization_id=account.organization_id,
        aggregate_id=account.id,
        message=message,
    )


def _caps_from(messages: Sequence[social_account_pb2.DailyCap]) -> Mapping[channels.Action, int]:
    caps: dict[int, int] = {}
    for index, message in enumerate(messages):
        place = f"daily_caps.daily_caps[{index}].action"
        if message.action not in ACTIONS.values():
            raise InvalidField(place, "is not known here")
        if message.action in caps:
            raise InvalidField(place, "is named twice")
        caps[message.action] = message.most
    return {action: caps[number] for action, number in ACTIONS.items() if number in caps}


def normalised_channels(names: Sequence[str], field: str = "channels") -> tuple[str, ...]:
    normalised: list[str] = []
    for index, name in enumerate(names):
        try:
            normalised.append(channels.normalise(name))
        except channels.UnknownChannel as error:
            raise InvalidField(f"{field}[{index}]", str(error), reason="UNKNOWN_CHANNEL") from None
    return tuple(dict.fromkeys(normalised))
