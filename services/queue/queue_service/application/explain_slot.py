"""Explaining a slot from what Queue knows, and from what Schedule, Drafts and Publisher answer in time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Protocol

from queue_service.adapters.postgres.circumstances import find_circumstances, find_filling
from queue_service.adapters.postgres.slots import Day, count_slots, find_slots
from queue_service.application.account_check import AccountCheck
from queue_service.application.earlier_times import EarlierTimes
from queue_service.domain.allocation import days_of
from queue_service.domain.circumstances import Circumstances
from queue_service.domain.explaining import Explanation, explain
from queue_service.domain.passed_times import OfferedTime, PassedTime, Surroundings, latest_before, passed_times
from queue_service.domain.policy import Policy
from queue_service.domain.slot import LIVE, QueueSlot
from servicekit.faults import Fault, NotFound
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.session import Session


class Drafts(Protocol):
    async def is_approved(self, organization_id: str, draft_id: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    slot: QueueSlot
    known: Circumstances
    now: datetime


class ExplainSlot:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        drafts: Drafts,
        check_accounts: AccountCheck,
        earlier_times: EarlierTimes,
        policy: Policy,
    ) -> None:
        self._database = database
        self._clock = clock
        self._drafts = drafts
        self._check_accounts = check_accounts
        self._earlier_times = earlier_times
        self._policy = policy

    async def __call__(self, organization_id: str, slot_id: str) -> Explanation:
        read = await self._read(organization_id, slot_id)
        async with asyncio.TaskGroup() as group:
            known = group.create_task(self._completed(read))
            offered = group.create_task(self._offered(read))
        passed = await self._passed(read, offered.result())
        return explain(read.slot, known.result(), passed, now=read.now)

    async def _read(self, organization_id: str, slot_id: str) -> _Reading:
        async with self._database.snapshot() as session:
            now = await self._clock.now(session.connection)
            known = await find_circumstances(session, organization_id, slot_id)
            if known is None:
                raise NotFound("SLOT_NOT_FOUND", f"slot {slot_id} does not exist", metadata={"slot_id": slot_id})
            [slot] = await find_slots(session.connection, [(organization_id, slot_id)])
        return _Reading(slot=slot, known=known, now=now)

    async def _completed(self, read: _Reading) -> Circumstances:
        """Asks about what has not been announced, or may be out of date, if it matters to the slot."""
        slot, known = read.slot, read.known
        if slot.state not in LIVE:
            return known
        async with asyncio.TaskGroup() as group:
            connected = group.create_task(self._is_connected(slot, known))
            approved = group.create_task(self._is_approved(slot, known))
        return replace(known, is_connected=connected.result(), is_approved=approved.result())

    async def _is_connected(self, slot: QueueSlot, known: Circumstances) -> bool | None:
        if known.is_connected is not None:
            return known.is_connected
        refusal = await self._check_accounts(slot.organization_id, [slot.social_account_id], connected=())
        return refusal is None

    async def _is_approved(self, slot: QueueSlot, known: Circumstances) -> bool | None:
        """Asks Drafts unless the draft was announced as approved: the previous release did not store approvals."""
        if known.is_approved:
            return True
        try:
            return await self._drafts.is_approved(slot.organization_id, slot.draft_id)
        except Fault:
            return None

    async def _offered(self, read: _Reading) -> Sequence[OfferedTime] | None:
        """Returns the latest slot times before the slot's, none of them past; None if Schedule does not say."""
        slot, now = read.slot, read.now
        if slot.schedule_time <= now:
            return ()
        try:
            return await self._earlier_times(slot.account, since=now, until=slot.schedule_time)
        except NotFound:
            return ()  # the account has no schedule
        except Fault:
            return None

    async def _passed(self, read: _Reading, offered: Sequence[OfferedTime] | None) -> Sequence[PassedTime] | None:
        if not offered:
            return None if offered is None else ()
        times = [each.time for each in latest_before(offered, read.slot)]
        async with self._database.read_session() as session:
            around = Surroundings(
                filled=await find_filling(session, read.slot, times),
                counted=await _counted(session, read, times),
                skipped=read.known.skipped_times,
                cap=read.known.max_posts_per_day,
                time_zone=read.known.time_zone,
            )
        category_id = read.known.category_id
        return passed_times(
            read.slot, offered, around, category_id=category_id, now=read.now, notice=self._policy.notice
        )


async def _counted(session: Session, read: _Reading, times: Sequence[datetime]) -> dict[date, int]:
    """Counts the slots that use up the daily cap, on the days of the times."""
    known, account = read.known, read.slot.account
    if Surroundings(cap=known.max_posts_per_day, time_zone=known.time_zone).zone is None:
        return {}
    days = [
        Day(account=account, local_date=day, start=start, end=end)
        for day, (start, end) in days_of(times, known.time_zone).items()
    ]
    return {day: slots for (_, day), slots in (await count_slots(session, days)).items()}
