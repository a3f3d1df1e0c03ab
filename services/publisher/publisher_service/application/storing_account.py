"""Stores an account with credentials that its provider has accepted, and opens its line.

ConnectAccount and FinishConnect share it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from publisher_service.adapters.postgres.accounts import (
    connected_elsewhere,
    insert_account,
    is_known_to_another,
    lock_account,
    lock_external,
    save_account,
)
from publisher_service.adapters.postgres.credentials import put_credential
from publisher_service.adapters.postgres.gates import add_gates, set_connection
from publisher_service.adapters.postgres.holds import lock_gate
from publisher_service.adapters.providers.adapter import CredentialsRefused, ProviderDown
from publisher_service.adapters.providers.provider import Provider, Providers
from publisher_service.adapters.vault import Vault
from publisher_service.application.changing_channels import change_channels
from publisher_service.domain.account import AccountState, Connection, SocialAccount
from publisher_service.domain.refresh import CredentialsState, connected
from publisher_service.wire.accounts import account_connected
from servicekit.faults import InvalidField, Refused, Unavailable
from servicekit.ids import IdSource
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox


class StoringAccount:
    def __init__(
        self,
        *,
        database: Database,
        ids: IdSource,
        outbox: Outbox,
        vault: Vault,
        providers: Providers,
        on_connected: Callable[[], None],
    ) -> None:
        self._database = database
        self._ids = ids
        self._outbox = outbox
        self._vault = vault
        self._providers = providers
        self._on_connected = on_connected

    def provider_of(self, name: str, channels: Sequence[str]) -> Provider:
        """Returns the provider; raises InvalidField for an unknown one, and for channels that it does not offer."""
        provider = self._providers.get(name)
        if provider is None:
            known = ", ".join(self._providers.names)
            raise InvalidField("provider", f"unknown provider; the known ones are {known}", reason="UNKNOWN_PROVIDER")
        for index, channel in enumerate(channels):
            if channel not in provider.channels:
                offered = ", ".join(provider.channels)
                raise InvalidField(
                    f"channels[{index}]",
                    f"{provider.name} does not offer {channel}; it offers {offered}",
                    reason="CHANNEL_NOT_OFFERED",
                )
        return provider

    async def accepted(self, provider: Provider, wanted: Connection, known: SocialAccount | None) -> Connection:
        """Returns the connection with the settings as they are stored, once the provider has accepted it."""
        given = wanted.settings or (known.settings if known is not None else {})
        ready, refusal = wanted, None
        try:
            ready = replace(wanted, settings=provider.check_settings(given))
            await provider.verify(ready.organization_id, ready.external_account_id, ready.credentials, ready.settings)
        except CredentialsRefused as refused:
            refusal = str(refused)
        except ProviderDown as away:
            raise Unavailable("PROVIDER_UNAVAILABLE", f"{provider.name} does not answer: {away}") from None
        if not provider.proves_owners:
            # No matter what the provider says: of an account of another organization no answer may tell that it exists.
            async with self._database.read() as connection:
                is_foreign = await is_known_to_another(connection, wanted)
            refusal = provider.unknown_account if is_foreign else refusal
        if refusal is not None:
            raise _refused(provider, refusal)
        return ready

    async def store(self, tx: Transaction, now: datetime, wanted: Connection, provider: Provider) -> SocialAccount:
        # Where nothing proves whose an account is, of the calls of all organizations the first one gets it.
        locked_for = wanted.organization_id if provider.proves_owners else ""
        await lock_external(tx.connection, locked_for, wanted.provider, wanted.external_account_id)
        if not provider.proves_owners and await is_known_to_another(tx.connection, wanted):
            raise _refused(provider, provider.unknown_account)
        if wanted.lifetime.expire_time is not None and wanted.lifetime.expire_time <= now:
            raise InvalidField("credentials.expire_time", "has passed")
        account_id = wanted.account_id or self._ids.new()
        # Before the account, as in a settlement: in the other order the two would deadlock.
        gate = (wanted.organization_id, account_id)
        await add_gates(tx.connection, [gate])
        await lock_gate(tx.connection, gate)
        account = await self._put(tx, wanted, provider, account_id, now)
        await set_connection(
            tx.connection, account.organization_id, account.id, provider=account.provider, connected=True, now=now
        )
        await self._outbox.append(tx, [account_connected(account)], now=now)
        tx.after_commit(self._on_connected)
        return account

    async def _put(
        self, tx: Transaction, wanted: Connection, provider: Provider, account_id: str, now: datetime
    ) -> SocialAccount:
        key = (wanted.organization_id, account_id)
        sealed = self._vault.seal(wanted.credentials, organization_id=wanted.organization_id, account_id=account_id)
        channels = wanted.channels or provider.channels
        fresh = _fresh(wanted, channels, account_id, _life(wanted, provider, None, key, now), now)
        await _require_free(tx, fresh)
        # An absent row cannot be locked: of concurrent first connections one inserts, and the others wait for it.
        if await insert_account(tx.connection, fresh, sealed):
            assert fresh.credentials is not None
            await put_credential(tx.connection, key, fresh.credentials, sealed)
            return fresh
        known = await lock_account(tx.connection, *key)
        assert known is not None, "an account is never deleted"
        _require_same(known, wanted)
        life = _life(wanted, provider, known.credentials, key, now)
        account = replace(
            fresh,
            version=known.version + 1,
            display_name=wanted.display_name or known.display_name,
            channels=wanted.channels or known.channels,
            create_time=known.create_time,
            daily_caps=known.daily_caps,
            credentials=life,
        )
        await change_channels(tx, known, account, now=now)
        await save_account(tx.connection, account, sealed)
        await put_credential(tx.connection, key, life, sealed)
        return account


def _life(
    wanted: Connection, provider: Provider, known: CredentialsState | None, key: tuple[str, str], now: datetime
) -> CredentialsState:
    lifetime = replace(wanted.lifetime, is_refreshable=provider.can_refresh(wanted.credentials))
    return connected(known, provider.name, lifetime, account=key, ahead=provider.refresh_ahead, now=now)


def _fresh(
    wanted: Connection, channels: tuple[str, ...], account_id: str, life: CredentialsState, now: datetime
) -> SocialAccount:
    return SocialAccount(
        organization_id=wanted.organization_id,
        id=account_id,
        provider=wanted.provider,
        external_account_id=wanted.external_account_id,
        display_name=wanted.display_name,
        channels=channels,
        state=AccountState.CONNECTED,
        version=1,
        create_time=now,
        update_time=now,
        settings=wanted.settings,
        credentials=life,
    )


def _refused(provider: Provider, why: str) -> Refused:
    return Refused("CREDENTIALS_REFUSED", f"{provider.name} refused the credentials: {why}")


async def _require_free(tx: Transaction, account: SocialAccount) -> None:
    """Refuses an account of the provider that the organization has under another id: its posts would go out by both."""
    if (other := await connected_elsewhere(tx.connection, account)) is not None:
        raise Refused(
            "ACCOUNT_CONNECTED_ELSEWHERE",
            f"the account is connected as {other}; connect that one again, or disconnect it first",
            metadata={"social_account_id": other},
        )


def _require_same(known: SocialAccount, wanted: Connection) -> None:
    if known.provider != wanted.provider:
        raise Refused(
            "PROVIDER_CHANGED",
            f"the account is one of {known.provider}; connect another account for {wanted.provider}",
            metadata={"social_account_id": known.id, "provider": known.provider},
        )
    if known.external_account_id != wanted.external_account_id:
        # A look-up under the new name would not find the posts that went out under the old one, and send them again.
        raise Refused(
            "EXTERNAL_ACCOUNT_CHANGED",
            "the account is another one at the provider; connect a new account for it",
            metadata={"social_account_id": known.id},
        )
