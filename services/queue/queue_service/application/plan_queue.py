"""PlanQueue: shows what a change would do to a queue, without doing it.

It reads one moment of the database, without locks and over a connection that cannot write; then the functions decide
that decide for the change itself. Slots that new time zone data is about to move are planned with the times they have.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from queue_service.adapters.postgres.accounts import find_queues
from queue_service.adapters.postgres.arrangement import find_counted, find_ended, find_seated, find_states
from queue_service.adapters.postgres.connections import find_connected
from queue_service.adapters.postgres.plans import pin_plans
from queue_service.application.account_check import AccountCheck
from queue_service.application.account_presence import AccountPresence
from queue_service.application.arranger import COUNTED_FOR
from queue_service.application.slot_time_reader import SlotTimeReader, TimesWanted, with_times
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.arrangement import Arrangement, Snapshot
from queue_service.domain.planned_change import (
    PlannedAdditions,
    PlannedChange,
    PlannedInFront,
    PlannedMove,
    PlannedRemoval,
    PlannedSchedule,
)
from queue_service.domain.planning import Basis, Plan, check_change, decide, front, plan
from queue_service.domain.policy import Policy
from queue_service.domain.reordering import Order
from queue_service.domain.rescheduling import Timetable
from queue_service.domain.schedule_check import ReadTimes, newer_schedules, refused
from queue_service.domain.slot import SlotState
from servicekit.faults import NotFound
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.session import Session


class Timetables(Protocol):
    """Schedule; see `queue_service.adapters.schedule_client`."""

    async def timetable(self, organization_id: str, social_account_id: str) -> Timetable: ...


class PlanQueue:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        policy: Policy,
        accounts: AccountPresence,
        check_accounts: AccountCheck,
        read_times: SlotTimeReader,
        timetables: Timetables,
    ) -> None:
        self._database = database
        self._clock = clock
        self._policy = policy
        self._accounts = accounts
        self._check_accounts = check_accounts
        self._read_times = read_times
        self._times = TimesOnDemand(read_times)
        self._timetables = timetables

    async def __call__(self, account: AccountKey, change: PlannedChange) -> Plan:
        check_change(change)
        match change:
            case PlannedAdditions() | PlannedInFront():
                return await self._plan_additions(account, change)
            case PlannedSchedule():
                await self._accounts.require(account)
                return await self._plan(account, change, None, timetable=await self._timetable(account))
            case Order() | PlannedMove() | PlannedRemoval():
                pass  # They name slots, which only an account that exists has.
            case _:
                await self._accounts.require(account)
        return await self._times(account, lambda read: self._plan(account, change, read))

    async def _plan_additions(self, account: AccountKey, change: PlannedAdditions | PlannedInFront) -> Plan:
        """Checks and reads what AddToQueue does."""
        await self._accounts.require(account)
        await self._require_connected(account)
        categories = tuple(dict.fromkeys((change.category, "")))

        async def attempt(wanted: TimesWanted) -> Plan:
            read = (await self._read_times({account: wanted}))[account]
            return await self._plan(account, change, read)

        few = TimesWanted(categories=categories, even_filled=isinstance(change, PlannedInFront))
        return await with_times(attempt, replace(few, count=few.count + change.count, needed=change.count))

    async def _require_connected(self, account: AccountKey) -> None:
        async with self._database.read_session() as session:
            connected = await find_connected(session, [account])
        organization_id, social_account_id = account
        known = [social_account_id] if connected else ()
        if refusal := await self._check_accounts(organization_id, [social_account_id], connected=known):
            raise refusal

    async def _timetable(self, account: AccountKey) -> Timetable:
        try:
            return await self._timetables.timetable(*account)
        except NotFound:
            raise refused("NO_SCHEDULE", f"account {account[1]} has no schedule", account[1]) from None

    async def _plan(
        self, account: AccountKey, change: PlannedChange, read: ReadTimes | None, *, timetable: Timetable | None = None
    ) -> Plan:
        async with self._database.snapshot() as session:
            now = await self._clock.now(session.connection)
            snapshot = await _snapshot(session, account, read, now=now)
            ended = await _ended(session, change, snapshot)
        basis = Basis(snapshot=snapshot, now=now, policy=self._policy, read=read, ended=ended, timetable=timetable)
        arrangement = (
            await _put_in_front(change, basis) if isinstance(change, PlannedInFront) else decide(change, basis)
        )
        return plan(snapshot, arrangement, now=now)


async def _put_in_front(change: PlannedInFront, basis: Basis) -> Arrangement:
    queue, left = front(change, basis), change.count
    while left:
        left -= queue.put(left)
        await asyncio.sleep(0)  # a step takes milliseconds, in which other posts may become due
    return queue.arrangement


async def _snapshot(session: Session, account: AccountKey, read: ReadTimes | None, *, now: datetime) -> Snapshot:
    """Reads the queue of an account. It gets a newer schedule that was read with slot times, as the change would."""
    queue = (await find_queues(session, {account})).get(account, AccountQueue(social_account_id=account[1]))
    for newer in newer_schedules({account: queue}, [{account: read}] if read else []):
        queue = queue.learned(newer)
    await pin_plans(session)
    # Without a cap they are needed only for a schedule with one.
    counted = await find_counted(session, account, since=now - COUNTED_FOR)
    return Snapshot(account=account, queue=queue, slots=await find_seated(session, account), counted=counted)


async def _ended(session: Session, change: PlannedChange, snapshot: Snapshot) -> Mapping[str, SlotState]:
    """Returns the states of the slots that the change names and that are not live, by the names that it uses."""
    match change:
        case Order():
            return await find_ended(session, snapshot.account, change, snapshot.slots)
        case PlannedMove(slot_id=slot_id) | PlannedRemoval(slot_id=slot_id) if not snapshot.find(slot_id):
            return await find_states(session, snapshot.account, [slot_id], are_drafts=False)
        case _:
            return {}
