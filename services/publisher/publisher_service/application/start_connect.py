"""StartConnect: begins a visit to a provider, where a person grants access to their accounts.

The answer holds the state, which lets anybody finish the visit: the database has only its digest, and the request
ledger the answer sealed.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from publisher_service.adapters.pkce import challenge_of, new_state, new_verifier
from publisher_service.adapters.postgres.accounts import get_account
from publisher_service.adapters.postgres.connect_sessions import add_session, state_digest
from publisher_service.adapters.providers.adapter import ProviderDown
from publisher_service.adapters.providers.provider import Provider
from publisher_service.adapters.vault import Vault
from publisher_service.application.storing_account import StoringAccount
from publisher_service.domain.connecting import (
    SESSION_LIFE,
    Session,
    SessionState,
    StartedSession,
    WantedSession,
    session_place,
)
from servicekit.failpoints import declare, failpoint
from servicekit.faults import InvalidField, Refused, Unavailable
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Call, RequestLedger

R = TypeVar("R")

_COMMITTED = declare("publisher.start_connect.committed")


class StartConnect:
    def __init__(
        self,
        *,
        database: Database,
        ledger: RequestLedger,
        vault: Vault,
        storing: StoringAccount,
        redirect_uris: Collection[str],
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._vault = vault
        self._storing = storing
        self._redirect_uris = redirect_uris

    async def __call__(self, call: Call[StartedSession, R], wanted: WantedSession) -> R:
        provider = self._storing.provider_of(wanted.provider, wanted.channels)
        if not provider.grants_access:
            raise InvalidField("provider", f"{provider.name} offers no visits", reason="OAUTH_NOT_OFFERED")
        if wanted.redirect_uri not in self._redirect_uris:
            raise InvalidField(
                "redirect_uri", "is none of those that this installation lists", reason="REDIRECT_URI_NOT_ALLOWED"
            )
        ready = replace(wanted, settings=await self._settings(provider, wanted))
        state, verifier = new_state(), new_verifier()
        url = self._page(provider, state, verifier, wanted.redirect_uri)
        answer = await self._ledger.once(
            self._sealed(call),
            lambda tx, now: self._start(tx, now, ready, state=state, verifier=verifier, url=url),
        )
        await failpoint(_COMMITTED)
        return answer

    async def _settings(self, provider: Provider, wanted: WantedSession) -> dict[str, str]:
        """Returns the settings, with those that a known account has if none are given."""
        async with self._database.read() as connection:
            known = await get_account(connection, wanted.organization_id, wanted.account_id)
        if known is not None and known.provider != wanted.provider:
            raise Refused(
                "PROVIDER_CHANGED",
                f"the account is one of {known.provider}; connect another account for {wanted.provider}",
                metadata={"social_account_id": known.id, "provider": known.provider},
            )
        try:
            return dict(provider.check_settings(wanted.settings or (known.settings if known is not None else {})))
        except ProviderDown as away:
            raise Unavailable("PROVIDER_UNAVAILABLE", f"{provider.name} does not answer: {away}") from None

    def _page(self, provider: Provider, state: str, verifier: str, redirect_uri: str) -> str:
        try:
            return provider.authorization_url(state, challenge_of(verifier), redirect_uri)
        except ProviderDown as away:
            raise Unavailable("PROVIDER_UNAVAILABLE", f"{provider.name} has no page to visit: {away}") from None

    async def _start(
        self, tx: Transaction, now: datetime, wanted: WantedSession, *, state: str, verifier: str, url: str
    ) -> StartedSession:
        digest = state_digest(state)
        session = Session(
            wanted=wanted,
            state=SessionState.STARTED,
            expire_time=now + SESSION_LIFE,
            sealed=self._vault.seal_text(verifier, place=session_place(wanted.organization_id, digest)),
        )
        await add_session(tx.connection, digest, session)
        return StartedSession(authorization_url=url, state=state, expire_time=session.expire_time)

    def _sealed(self, call: Call[StartedSession, R]) -> Call[StartedSession, R]:
        """Returns the call with an answer that is sealed where it is stored."""
        place = f"request_ledger|{call.organization_id}|{call.method}|{call.request_id}"

        def encode(answer: R) -> bytes:
            return self._vault.seal_text(call.encode(answer).decode("latin-1"), place=place)

        def decode(stored: bytes) -> R:
            return call.decode(self._vault.open_text(stored, place=place).encode("latin-1"))

        return replace(call, encode=encode, decode=decode)
