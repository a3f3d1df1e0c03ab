"""FinishConnect: exchanges the code with which a person comes back from a provider, and stores the account.

That a code is being exchanged is committed before the request, so that none is presented twice. The exchange goes on if
its caller gives up: a code is good for one use. What was granted is kept, sealed, until a call has stored an account of
it. A call that dies in between, or has to choose, goes on with it.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

from publisher_service.adapters.postgres.accounts import get_account
from publisher_service.adapters.postgres.connect_sessions import lock_session, save_session, state_digest
from publisher_service.adapters.providers.provider import Provider
from publisher_service.adapters.vault import Vault
from publisher_service.application.storing_account import StoringAccount
from publisher_service.domain.account import Connection, SocialAccount
from publisher_service.domain.connecting import (
    Candidate,
    FinishedSession,
    Grant,
    GrantAnswer,
    GrantDelayed,
    GrantRefused,
    Offered,
    Return,
    Session,
    SessionState,
    chosen,
    require_open,
    session_place,
)
from publisher_service.domain.refresh import Lifetime, missing_scopes
from publisher_service.wire.grants import grant_from, grant_text
from servicekit.failpoints import declare, failpoint
from servicekit.faults import Fault, InvalidField, Refused, Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Call, RequestLedger

R = TypeVar("R")

_log = logging.getLogger(__name__)

_BEGUN = declare("publisher.finish_connect.begun")
_GRANTED = declare("publisher.finish_connect.granted")
_COMMITTED = declare("publisher.finish_connect.committed")
_MARGIN = timedelta(seconds=5)
_PERIOD = 0.1
# Seconds that exchanges have to end when the process does, after the time that their calls had.
_LAST_WAIT = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """A visit that a call may go on with, and the verifier if this call has to exchange the code."""

    session: Session
    verifier: str = ""


class FinishConnect:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        vault: Vault,
        storing: StoringAccount,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._vault = vault
        self._storing = storing
        self._exchanges: set[asyncio.Task[GrantAnswer]] = set()

    async def close(self) -> None:
        """Ends the exchanges whose callers have gone."""
        if self._exchanges:
            _, late = await asyncio.wait(self._exchanges, timeout=_LAST_WAIT)
            for exchange in late:
                exchange.cancel()

    async def __call__(self, call: Call[FinishedSession, R], back: Return) -> R:
        visit: _Visit | None = None
        while visit is None:
            stored, visit = await self._database.run(lambda tx: self._begin(tx, call, back))
            await failpoint(_BEGUN)
            if stored is not None:
                return stored
            if visit is None:
                await asyncio.sleep(_PERIOD)
        key = (call.organization_id, state_digest(back.state))
        provider = self._storing.provider_of(visit.session.wanted.provider, ())
        if visit.verifier:
            await self._exchange(key, provider, back, visit)
        grant = await self._granted(key)
        candidate = chosen(grant, back.external_account_id) if grant is not None else None
        ready = await self._ready(provider, visit.session, grant, candidate) if grant and candidate else None
        answer = await self._ledger.once(
            call, lambda tx, now: self._finish(tx, now, key, grant=grant, ready=ready, provider=provider)
        )
        await failpoint(_COMMITTED)
        return answer

    async def _begin(
        self, tx: Transaction, call: Call[FinishedSession, R], back: Return
    ) -> tuple[R | None, _Visit | None]:
        """Records that the code is being exchanged. Returns the stored answer of the call, if any, and the visit.

        Without both another call is exchanging the code.
        """
        organization_id, digest = call.organization_id, state_digest(back.state)
        now = await self._clock.now(tx.connection)
        found = await lock_session(tx.connection, organization_id, digest)
        # A repeated call gets its answer even if the visit has ended by now: both are committed together.
        if (stored := await self._ledger.look(tx.connection, call)) is not None:
            return stored, None
        session = require_open(found, now=now)
        match session.state:
            case SessionState.GRANTED:
                return None, _Visit(session=session)
            case SessionState.EXCHANGING:
                assert session.exchange_end is not None
                if now < session.exchange_end:
                    return None, None
                raise Refused("STATE_USED", "the call that exchanged the code was interrupted; begin another visit")
            case SessionState.STARTED:
                if not back.code:
                    raise InvalidField("code", "is required until a call has exchanged it")
                provider = self._storing.provider_of(session.wanted.provider, ())
                begun = replace(
                    session, state=SessionState.EXCHANGING, exchange_end=now + provider.time_limit + _MARGIN
                )
                await save_session(tx.connection, digest, begun)
                verifier = self._vault.open_text(session.sealed, place=session_place(organization_id, digest))
                return None, _Visit(session=begun, verifier=verifier)
            case SessionState.ENDED:
                raise AssertionError("a visit that has ended is refused")
            case _:
                assert_never(session.state)

    async def _exchange(self, key: tuple[str, bytes], provider: Provider, back: Return, visit: _Visit) -> None:
        """Has the code presented. Raises why nothing was granted."""
        exchange = asyncio.get_running_loop().create_task(self._present(key, provider, back, visit))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._ended)
        match answer := await asyncio.shield(exchange):
            case Grant():
                if missing := missing_scopes(provider.scopes, answer.scopes):
                    raise Refused(
                        "SCOPES_MISSING",
                        f"the person has not granted {', '.join(missing)}",
                        metadata={"scopes": ",".join(missing)},
                    )
            case GrantRefused(message=message):
                raise Refused("CODE_REFUSED", f"{provider.name} refused the code: {message}")
            case GrantDelayed(message=message):
                raise Unavailable("PROVIDER_UNAVAILABLE", f"{provider.name} did not exchange the code: {message}")
            case _:
                assert_never(answer)

    async def _present(self, key: tuple[str, bytes], provider: Provider, back: Return, visit: _Visit) -> GrantAnswer:
        """Presents the code and keeps what was granted."""
        answer = await provider.exchange(back.code, visit.verifier, visit.session.wanted.redirect_uri)
        await self._database.run(lambda tx: self._keep(tx, key, answer, provider))
        await failpoint(_GRANTED)
        return answer

    def _ended(self, exchange: asyncio.Task[GrantAnswer]) -> None:
        self._exchanges.discard(exchange)
        error = None if exchange.cancelled() else exchange.exception()
        if error is not None and not isinstance(error, Fault):
            # Its caller may have gone.
            _log.warning("what was granted is not kept", exc_info=error)

    async def _keep(self, tx: Transaction, key: tuple[str, bytes], answer: GrantAnswer, provider: Provider) -> None:
        now = await self._clock.now(tx.connection)
        session = await lock_session(tx.connection, *key)
        if session is None or session.state is not SessionState.EXCHANGING:
            # Meanwhile the account was disconnected, and this visit with it.
            raise Refused("STATE_USED", "the visit has ended meanwhile; begin another one")
        after = replace(session, state=SessionState.ENDED, exchange_end=None, sealed=b"")
        if isinstance(answer, Grant) and not missing_scopes(provider.scopes, answer.scopes):
            sealed = self._vault.seal_text(grant_text(answer, now=now), place=session_place(*key))
            after = replace(after, state=SessionState.GRANTED, sealed=sealed)
        elif isinstance(answer, GrantDelayed) and answer.is_unused:
            after = replace(after, state=SessionState.STARTED, sealed=session.sealed)
        await save_session(tx.connection, key[1], after)

    async def _granted(self, key: tuple[str, bytes]) -> Grant | None:
        """Returns what was granted; None if another call has ended the visit meanwhile."""
        async with self._database.statement() as connection:
            now = await self._clock.now(connection)
            session = await lock_session(connection, *key)
        if session is None or session.state is not SessionState.GRANTED:
            return None
        return grant_from(self._vault.open_text(session.sealed, place=session_place(*key)), now=now)

    async def _ready(self, provider: Provider, session: Session, grant: Grant, candidate: Candidate) -> Connection:
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            known = await get_account(connection, session.wanted.organization_id, session.wanted.account_id)
        wanted = _connection(session, grant, candidate, known, now)
        return await self._storing.accepted(provider, wanted, known)

    async def _finish(
        self,
        tx: Transaction,
        now: datetime,
        key: tuple[str, bytes],
        *,
        grant: Grant | None,
        ready: Connection | None,
        provider: Provider,
    ) -> FinishedSession:
        """Stores the account and ends the visit; without an account to store, returns those that were granted."""
        session = require_open(await lock_session(tx.connection, *key), now=now)
        assert grant is not None, "a visit that is open was granted"
        if ready is None:
            return FinishedSession(candidates=[_offered(each, provider) for each in grant.candidates])
        account = await self._storing.store(tx, now, ready, provider)
        await save_session(tx.connection, key[1], replace(session, state=SessionState.ENDED, sealed=b""))
        return FinishedSession(account=account)


def _connection(
    session: Session, grant: Grant, candidate: Candidate, known: SocialAccount | None, now: datetime
) -> Connection:
    wanted = session.wanted
    return Connection(
        organization_id=wanted.organization_id,
        account_id=wanted.account_id,
        provider=wanted.provider,
        external_account_id=candidate.external_account_id,
        display_name=wanted.display_name or ("" if known is not None else candidate.name),
        channels=wanted.channels or (() if known is not None else candidate.channels),
        credentials=candidate.credentials,
        lifetime=Lifetime(
            expire_time=_end(now, candidate.expires_in),
            refresh_expire_time=_end(now, candidate.refresh_expires_in),
            scopes=grant.scopes,
        ),
        settings=wanted.settings,
    )


def _offered(candidate: Candidate, provider: Provider) -> Offered:
    return Offered(
        external_account_id=candidate.external_account_id,
        name=candidate.name,
        channels=candidate.channels or provider.channels,
    )


def _end(now: datetime, duration: timedelta | None) -> datetime | None:
    return None if duration is None else now + duration
