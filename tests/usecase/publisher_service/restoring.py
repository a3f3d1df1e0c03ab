"""A database that is older than its mark, and the steps by which it is reconciled."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from publisher_service.adapters.postgres.safe_modes import enter
from publisher_service.application.leave_safe_mode import LeaveSafeMode
from publisher_service.application.read_safe_mode import ReadSafeMode
from publisher_service.application.reconcile import Reconcile
from publisher_service.domain.mark import Mark
from publisher_service.domain.plan import Slot
from publisher_service.domain.safe_mode import SafeMode, SafeModeReason, Summary
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from tests.usecase.publisher_service.replica import AT_ONCE, DUE, FAR, Replica, a_command

Replay = Callable[[datetime | None], Awaitable[None]]


async def nothing(since: datetime | None) -> None:
    """Stands for a stream that has lost everything."""


def reconciling(replica: Replica, replay: Replay = nothing) -> Reconcile:
    return Reconcile(
        database=replica.database,
        clock=replica.clock,
        outbox=Outbox(Uuid7Source(), lambda rows: None),
        policies=lambda name: AT_ONCE,
        replay=replay,
    )


def leaving(replica: Replica) -> LeaveSafeMode:
    ledger = RequestLedger(replica.database, replica.clock)
    return LeaveSafeMode(
        database=replica.database,
        clock=replica.clock,
        ledger=ledger,
        outbox=Outbox(Uuid7Source(), lambda rows: None),
        wake_lines=lambda: None,
    )


async def restored(replica: Replica, *, mark_time: datetime | None = None) -> None:
    """Has the database be older than a mark."""
    async with replica.database.read() as connection:
        now = await replica.clock.now(connection)
    replica.marks.learn([Mark(process="another", number=9, time=mark_time or now)])
    async with replica.database.transaction() as tx:
        assert await enter(tx, SafeModeReason.MARK_AHEAD, replica.marks.known, alive=now, now=now)


async def reconcile(replica: Replica, replay: Replay = nothing) -> None:
    steps = reconciling(replica, replay)
    while await steps.step():
        pass


def a_slot(draft: str, due: datetime) -> Slot:
    command = a_command(draft)
    return Slot(
        organization_id="acme",
        slot_id="slot",
        sequence=0,
        revision=1,
        draft_id=draft,
        targets=(command.target,),
        schedule_time=due,
        not_after=FAR,
        target_month="2026-03-01",
        traceparent="",
        content_revision=1,
    )


async def scheduled(replica: Replica, count: int, *, due: datetime = DUE) -> list[str]:
    names = await replica.posts(count)
    await replica.take(*(a_slot(name, due) for name in names))
    return names


async def shown(replica: Replica) -> tuple[SafeMode, Summary]:
    found = await ReadSafeMode(replica.database)()
    assert found is not None
    return found


async def leave(replica: Replica, *, force: bool = False) -> tuple[SafeMode, Summary]:
    left: tuple[SafeMode, Summary] = await leaving(replica)(
        call("LeaveSafeMode", organization_id="", request_id=Uuid7Source().new()), "ann", force=force
    )
    return left
