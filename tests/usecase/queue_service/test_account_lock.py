"""Accounts are locked with the newest schedule that is known, and with their slots at their instants."""

from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot
from civil.zones import tzdata_version
from queue_service.application.account_lock import AccountLock
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_time_reader import SlotTimeReader, TimesWanted
from servicekit.ids import Uuid7Source
from servicekit.pg.outbox import Outbox
from testkit.clocks import START
from tests.usecase.queue_service.tzdata import HOUR, NOON, queued

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

PAGE = ("acme", "page")


def lock_of(queue: "Queue") -> AccountLock:
    outbox = Outbox(Uuid7Source(), queue.offered.extend)
    return AccountLock(SlotMover(outbox=outbox, policy=queue.policy, release=tzdata_version()))


async def test_a_schedule_from_an_answer_is_saved_under_the_lock(queue: "Queue") -> None:
    await queue.put_schedule("page", WeeklySlot(day=2, hour=7, minute=0), version=3, cap=4, announce=False)
    read = SlotTimeReader(database=queue.database, clock=queue.clock, schedule=queue.schedule, policy=queue.policy)
    times = await read({PAGE: TimesWanted()})
    async with queue.database.transaction() as tx:
        locked = await lock_of(queue)(tx, [PAGE], [times], START)
    assert (locked[PAGE].schedule_version, locked[PAGE].max_posts_per_day) == (3, 4)


async def test_outdated_slots_move_before_the_account_is_used(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    await queue.announce_schedule("page")
    async with queue.database.transaction() as tx:
        await lock_of(queue)(tx, [PAGE], [], START)
    assert await queue.times() == [NOON]
