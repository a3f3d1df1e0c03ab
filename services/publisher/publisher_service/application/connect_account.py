"""Connects a social account with credentials that the provider has accepted, and opens its line."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from publisher_service.adapters.postgres.accounts import insert_account, lock_account, save_account
from publisher_service.adapters.postgres.gates import set_connection
from publisher_service.adapters.providers.adapter import CredentialsRefused, ProviderAway
from publisher_service.adapters.providers.provider import Provider, Providers
from publisher_service.adapters.vault import Vault
from publisher_service.domain.account import AccountState, Connection, SocialAccount
from publisher_service.wire.accounts import ConnectAccountResponse, account_connected, social_account
from servicekit.faults import InvalidField, Refused, Unavailable
from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class ConnectAccount:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ids: IdSource,
        ledger: RequestLedger,
        outbox: Outbox,
        vault: Vault,
        providers: Providers,
        on_connected: Callable[[], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._ledger = ledger
        self._outbox = outbox
        self._vault = vault
        self._providers = providers
        self._on_connected = on_connected

    async def __call__(self, wanted: Connection, key: RequestKey) -> ConnectAccountResponse:
        provider = self._provider(wanted)
        # A repeat gets its answer whatever the provider says by now.
        async with self._database.read() as connection:
            if (answer := await self._ledger.look(connection, key)) is not None:
                return ConnectAccountResponse.FromString(answer)
        try:
            await provider.verify(wanted.external_account_id, wanted.access_token)
        except CredentialsRefused as refusal:
            raise Refused("CREDENTIALS_REFUSED", f"{provider.name} refused the credentials: {refusal}") from None
        except ProviderAway as away:
            raise Unavailable("PROVIDER_UNAVAILABLE", f"{provider.name} does not answer: {away}") from None
        if not wanted.channels:
            wanted = replace(wanted, channels=provider.channels)
        return await self._database.run(lambda tx: self._store(tx, wanted, key))

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

    async def _store(self, tx: Transaction, wanted: Connection, key: RequestKey) -> ConnectAccountResponse:
        now = await self._clock.now(tx.connection)
        remembered = await self._ledger.recall(tx, key, now=now)
        if remembered and remembered.response is not None:
            return ConnectAccountResponse.FromString(remembered.response)
        account_id = wanted.account_id or self._ids.new()
        account = await self._put(tx, wanted, account_id, now)
        await set_connection(
            tx.connection, account.organization_id, account.id, provider=account.provider, connected=True, now=now
        )
        await self._outbox.append(tx, [account_connected(account)], now=now)
        response = ConnectAccountResponse(social_account=social_account(account))
        await self._ledger.answer(tx, key, response.SerializeToString())
        tx.after_commit(self._on_connected)
        return response

    async def _put(self, tx: Transaction, wanted: Connection, account_id: str, now: datetime) -> SocialAccount:
        sealed = self._vault.seal(wanted.access_token, organization_id=wanted.organization_id, account_id=account_id)
        fresh = _fresh(wanted, account_id, now)
        # A row that is not there cannot be locked: of concurrent first connections one inserts, the others wait for it.
        if await insert_account(tx.connection, fresh, sealed):
            return fresh
        known = await lock_account(tx.connection, wanted.organization_id, account_id)
        assert known is not None, "an account is never deleted"
        _require_same(known, wanted)
        account = replace(fresh, version=known.version + 1, create_time=known.create_time)
        await save_account(tx.connection, account, sealed)
        return account


def _fresh(wanted: Connection, account_id: str, now: datetime) -> SocialAccount:
    return SocialAccount(
        organization_id=wanted.organization_id,
        id=account_id,
        provider=wanted.provider,
        external_account_id=wanted.external_account_id,
        display_name=wanted.display_name,
        channels=wanted.channels,
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
        # A look-up there would find none of the posts that went out under the old name, and send them again.
        raise Refused(
            "EXTERNAL_ACCOUNT_CHANGED",
            "the account is another one at the provider; connect a new account for it",
            metadata={"social_account_id": known.id},
        )
