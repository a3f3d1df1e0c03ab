"""Looks at credentials that are due: refreshes them ahead of their end, warns of it, or disconnects at it.

A refresh is recorded as an intention before its request, and no transaction is open while the provider is asked. One
process at a time asks for an account: it has taken the row, with a lease. If it dies, the next one presents the same
refresh token again, and the journal shows why.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import assert_never

from opentelemetry import metrics

from publisher_service.adapters.postgres.credentials import DuePage, record_intents, take_due
from publisher_service.adapters.providers.provider import Provider, Providers
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.application.recording_refresh import RecordingRefresh
from publisher_service.domain.refresh import (
    Due,
    RefreshAnswer,
    RefreshDelayed,
    Refreshed,
    RefreshRefused,
    Step,
)
from servicekit.clock import Clock
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.transient import is_transient

_TAKEN = declare("publisher.refresh.taken")
_ANSWERED = declare("publisher.refresh.answered")
_RECORDED = declare("publisher.refresh.recorded")
_MARGIN = timedelta(seconds=5)
# Left of the lease when the request begins, beside the request's own time.
_SPARE = timedelta(seconds=1)
_KEY_MISSING = timedelta(seconds=30)
# Seconds: for how long, and how often, an answer is recorded again while the database is unreachable.
_PATIENCE = 60.0
_AGAIN = 0.5
_meter = metrics.get_meter(__name__)
_refreshes = _meter.create_counter("postflow.publish.refreshes", description="Refreshes of credentials by outcome")
_OUTCOMES = ("refreshed", "refused", "delayed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Credentials that are due, and the monotonic time before they were taken: the lease has not begun earlier."""

    due: Due
    began: float


class RefreshDue:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        system: Clock,
        outbox: Outbox,
        providers: Providers,
        vault: Vault,
        process: str,
        on_opened: Callable[[], None],
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._clock = clock
        self._system = system
        self._providers = providers
        self._vault = vault
        self._process = process
        self._recording = RecordingRefresh(outbox=outbox, vault=vault, on_opened=on_opened, draw=draw)
        self._after: dict[str, str] = {}
        for provider, outcome in product(providers, _OUTCOMES):
            _refreshes.add(0, {"provider": provider.name, "outcome": outcome})

    @property
    def providers(self) -> Sequence[Provider]:
        return list(self._providers)

    async def take(self, provider: Provider, room: int) -> tuple[Sequence[Taken], bool]:
        """Takes what is due, in turn over organizations. Returns it, and whether there may be more."""
        began = self._system.monotonic()
        page = await self._database.run(lambda tx: self._take(tx, provider, room))
        is_round = not self._after.get(provider.name)
        self._after[provider.name] = page.last
        if page.taken:
            await failpoint(_TAKEN)
        more = bool(page.taken or page.last or not is_round)
        return [Taken(due=due, began=began) for due in page.taken], more

    async def __call__(self, taken: Taken) -> None:
        """Does what is due about one account, and records it."""
        due = taken.due
        if due.step is not Step.REFRESH or not due.is_connected:
            await self._database.run(lambda tx: self._look(tx, due))
            await failpoint(_RECORDED)
            return
        provider = self._providers[due.state.provider]
        answer = await self._ask(taken, provider)
        await failpoint(_ANSWERED)
        _refreshes.add(1, {"provider": provider.name, "outcome": _outcome(answer)})
        await self._keep(due, answer, provider)

    async def _keep(self, due: Due, answer: RefreshAnswer, provider: Provider) -> None:
        """Records the answer, also if the database is unreachable for a while: the provider may not give it again."""
        end = self._system.monotonic() + _PATIENCE
        while True:
            try:
                await self._database.run(lambda tx: self._record(tx, due, answer, provider))
            except Exception as error:
                if not is_transient(error) or self._system.monotonic() > end:
                    raise
            else:
                await failpoint(_RECORDED)
                return
            await asyncio.sleep(_AGAIN)

    async def _take(self, tx: Transaction, provider: Provider, room: int) -> DuePage:
        now = await self._clock.now(tx.connection)
        page = await take_due(
            tx.connection,
            provider.name,
            after=self._after.get(provider.name, ""),
            now=now,
            lease_end=now + _lease(provider),
            limit=room,
        )
        begun = [due for due in page.taken if due.step is Step.REFRESH and due.is_connected]
        await record_intents(tx.connection, begun, process=self._process, now=now)
        return page

    async def _ask(self, taken: Taken, provider: Provider) -> RefreshAnswer:
        left = _lease(provider).total_seconds() - (self._system.monotonic() - taken.began)
        if left < (provider.time_limit + _SPARE).total_seconds():
            # A process that stood still must not ask on a lease that may have ended.
            return RefreshDelayed(message="too little of the lease was left for a request")
        due = taken.due
        try:
            credentials = self._vault.open(due.sealed, organization_id=due.organization_id, account_id=due.account_id)
        except CredentialsUnreadable as error:
            return RefreshDelayed(message=str(error), retry_after=_KEY_MISSING)
        return await provider.refresh(due.external_account_id, credentials, due.settings)

    async def _record(self, tx: Transaction, due: Due, answer: RefreshAnswer, provider: Provider) -> None:
        now = await self._clock.now(tx.connection)
        match answer:
            case Refreshed():
                await self._recording.done(tx, due, answer, ahead=provider.refresh_ahead, now=now)
            case RefreshRefused():
                await self._recording.refused(tx, due, answer, is_rotating=provider.is_rotating, now=now)
            case RefreshDelayed():
                await self._recording.delayed(tx, due, answer, now=now)
            case _:
                assert_never(answer)

    async def _look(self, tx: Transaction, due: Due) -> None:
        await self._recording.looked(tx, due, now=await self._clock.now(tx.connection))


def _lease(provider: Provider) -> timedelta:
    return provider.time_limit + _MARGIN


def _outcome(answer: RefreshAnswer) -> str:
    match answer:
        case Refreshed():
            return "refreshed"
        case RefreshRefused():
            return "refused"
        case RefreshDelayed():
            return "delayed"
    assert_never(answer)
