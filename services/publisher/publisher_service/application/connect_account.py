"""Connects a social account with credentials that the provider has accepted, and opens its line."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from publisher_service.adapters.postgres.accounts import insert_account, lock_account, save_account
from publisher_service.adapters.postgres.gates import add_gates, set_connection
from publisher_service.adapters.postgres.holds import lock_gate
from publisher_service.adapters.providers.adapter import CredentialsRefused, ProviderDown
from publisher_service.adapters.providers.provider import Provider, Providers
from publisher_service.adapters.vault import Vault
from publisher_service.application.changing_channels import change_channels
from publisher_service.domain.account import AccountState, Connection, SocialAccount
from publisher_service.wire.accounts import account_connected
from servicekit.failpoints import declare, failpoint
from servicekit.faults import InvalidField, Refused, Unavailable
from servicekit.ids import IdSource
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox

R = TypeVar("R")

_VERIFIED = declare("publisher.connect.verified")
_COMMITTED = declare("publisher.connect.committed")


class ConnectAccount:
    def __init__(
        self,
        *,
        database: Database,
        ids: IdSource,
        ledger: RequestLedger,
        outbox: Outbox,
        vault: Vault,
        providers: Providers,
        on_connected: Callable[[], None],
    ) -> None:
        self._database = database
        self._ids = ids
        self._ledger = ledger
        self._outbox = outbox
        self._vault = vault
        self._providers = providers
        self._on_connected = on_connected

    async def __call__(self, call: Call[SocialAccount, R], wanted: Connection) -> R:
        provider = self._provider(wanted)
        # A repeated call gets its answer even if the provider would refuse the credentials by now.
        async with self._database.read() as connection:
            if (answer := await self._ledger.look(connection, call)) is not None:
                return answer
        try:
            await provider.verify(wanted.external_account_id, wanted.access_token)
        except CredentialsRefused as refusal:
            raise Refused("CREDENTIALS_REFUSED", f"{provider.name} refused the credentials: {refusal}") from None
        except ProviderDown as away:
            raise Unavailable("PROVIDER_UNAVAILABLE", f"{provider.name} does not answer: {away}") from None
        await failpoint(_VERIFIED)
        answer = await self._ledger.once(call, lambda tx, now: self._store(tx, now, wanted, provider))
        await failpoint(_COMMITTED)
        return answer

    def _provider(self, wanted: Connection) -> Provider:
        provider = self._providers.get(wanted.provider)
        if provider is None:
            known = ", ".join(self._providers.names)
            raise InvalidField("provider", f"unknown provider; the known ones are {known}", reason="UNKNOWN_PROVIDER")
        for index, channel in enumerate(wanted.channels):
            if channel not in provider.channels:
                offered = ", ".join(provider.channels)
                raise InvalidField(
                    f"channels[{index}]",
                    f"{provider.name} does not offer {channel}; it offers {offered}",
                    reason="CHANNEL_NOT_OFFERED",
                )
        return provider

    async def _store(self, tx: Transaction, now: datetime, wanted: Connection, provider: Provider) -> SocialAccount:
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
        sealed = self._vault.seal(wanted.access_token, organization_id=wanted.organization_id, account_id=account_id)
        fresh = _fresh(wanted, wanted.channels or provider.channels, account_id, now)
        # An absent row cannot be locked: of concurrent first connections one inserts, and the others wait for it.
        if await insert_account(tx.connection, fresh, sealed):
            return fresh
        known = await lock_account(tx.connection, wanted.organization_id, account_id)
        assert known is not None, "an account is never deleted"
        _require_same(known, wanted)
        account = replace(
            fresh,
            version=known.version + 1,
            display_name=wanted.display_name or known.display_name,
            channels=wanted.channels or known.channels,
            create_time=known.create_time,
            daily_caps=known.daily_caps,
        )
        await change_channels(tx, known, account, now=now)
        await save_account(tx.connection, account, sealed)
        return account


def _fresh(wanted: Connection, channels: tuple[str, ...], account_id: str, now: datetime) -> SocialAccount:
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
