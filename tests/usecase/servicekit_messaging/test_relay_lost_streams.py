"""The relay after a loss: lost events are published again page by page, and new ones do not wait for them."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from servicekit.bus.publisher import Outgoing, Stored
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.housekeeping import Housekeeping, Retention
from testkit.broker import MemoryBroker
from testkit.eventually import eventually
from tests.usecase.servicekit_messaging.sites import PAGE, SLOWLY, Site, is_verified, running


async def test_new_events_are_published_despite_very_many_lost_ones(database_url: str) -> None:
    """Gives each statement a seventh of a second: none may take time in proportion to the loss."""
    database = Database(database_url, application="test", statement_timeout=timedelta(milliseconds=150))
    patient = Site(Database(database_url, application="test"), MemoryBroker())
    site = Site(database, patient.broker)
    await patient.acknowledged(60_000)
    site.broker.wipe()
    relay = site.relay(rate=SLOWLY)
    async with running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: site.is_marked("new"))
        assert len(site.broker.events) <= PAGE + 1, "and nobody waited for the others"
    async with running(site.relay()):
        await eventually(patient.is_healed, within=60)
    assert len(site.broker.events) == 60_001
    for each in (database, patient.database):
        await each.dispose()


async def test_lost_events_come_back_while_new_events_never_pause(site: Site) -> None:
    class Busy(MemoryBroker):
        """Announces another event each time that something is published."""

        number = 0

        async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
            self.number += 1
            await site.announce(relay, f"new {self.number}")
            return await super().publish(messages)

    await site.acknowledged(2000)
    await site._insert(["left"], age=timedelta(minutes=1))
    busy = Busy()
    busy.connections = 1
    relay = site.relay(broker=busy)
    async with running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: {"left", "e1999"} <= {event.id for event in busy.events})


async def test_another_process_continues_after_the_death_of_one(site: Site) -> None:
    await site.acknowledged(5000)
    site.broker.wipe()
    dying = site.relay(rate=SLOWLY)
    task = asyncio.create_task(dying.run(asyncio.Event()))  # noqa: TID251 - it is killed
    await eventually(lambda: len(site.broker.events) == PAGE)
    task.cancel()
    await asyncio.wait((task,))
    async with running(site.relay()):
        await eventually(site.is_healed)
    assert len(site.broker.events) == 5000, "none twice"


async def test_several_processes_publish_lost_events_once(site: Site) -> None:
    await site.acknowledged(10_000)
    site.broker.wipe()
    async with running(site.relay(), site.relay(), site.relay()):
        await eventually(site.is_healed)
    assert (len(site.broker.events), site.broker.duplicates) == (10_000, 0)


async def test_a_stream_that_is_lost_again_meanwhile_gets_everything(site: Site) -> None:
    await site.acknowledged(5000)
    site.broker.wipe()
    relay = site.relay(rate=SLOWLY)
    async with running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: site.is_marked("new"))
        await eventually(lambda: len(site.broker.events) == PAGE + 1)
    site.broker.wipe()
    async with running(site.relay()):
        await eventually(site.is_healed)
    assert len(site.broker.events) == 5001


@pytest.mark.parametrize("deeper", [10, 60, 69, 75])
async def test_a_tail_that_is_lost_again_while_it_is_published_comes_back(site: Site, deeper: int) -> None:
    """Loses messages 71 to 100 and, when some are back, all above `deeper`."""
    await site.acknowledged(5000)
    site.broker.roll_back(70)
    relay = site.relay(rate=SLOWLY)
    async with running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: site.is_marked("new"))
        await eventually(lambda: len(site.broker.events) == 70 * 50 + PAGE + 1)
    site.broker.roll_back(deeper)
    async with running(site.relay()):
        await eventually(site.is_healed)
    assert {event.id for event in site.broker.events} == {"new", *(f"e{number}" for number in range(5000))}


async def test_comparing_again_does_not_start_over(site: Site) -> None:
    """Lets new events have the sequences of lost ones: neither passes for the other."""
    await site.acknowledged(5000)
    site.broker.roll_back(20)
    relay = site.relay(rate=SLOWLY)
    async with running(relay):
        for turn in range(3):
            site.broker.connections += 1
            await eventually(is_verified(relay, site.broker))
            await site.announce(relay, *(f"new {turn} {number}" for number in range(60)))
            await eventually(lambda: site.is_marked(f"new {turn} 59"))  # noqa: B023 - awaited at once
    assert await site.one("select count(*) from outbox_era") == 2
    async with running(site.relay()):
        await eventually(site.is_healed)
    assert len(site.broker.events) == 5180, "each once"


async def test_a_refused_row_does_not_delay_later_ones(site: Site) -> None:
    await site.acknowledged(3000)
    site.broker.wipe()
    site.broker.refused = {"e10"}
    async with running(site.relay()):
        await eventually(lambda: len(site.broker.events) >= 2950)
        site.broker.refused = set()
        await eventually(site.is_healed)
    assert len(site.broker.events) == 3000


async def test_a_row_that_is_always_refused_delays_no_lost_ones(site: Site) -> None:
    await site.acknowledged(3000)
    await site._insert(["refused"], age=timedelta(minutes=1))
    site.broker.refused = {"refused"}
    site.broker.wipe()
    relay = site.relay()
    async with running(relay):
        await eventually(lambda: len(site.broker.events) == 3000)
    assert site.broker.refusals
    assert not relay._trouble


async def test_no_transaction_is_open_during_calls_of_the_stream(site: Site) -> None:
    class Curious(MemoryBroker):
        idle = 0

        async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
            self.idle += await site.one(
                "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'"
            )
            return await super().publish(messages)

    curious = Curious()
    everything = Site(site.database, curious)
    await everything.acknowledged(2000)
    curious.wipe()
    await everything._insert(["left"], age=timedelta(minutes=1))
    relay = everything.relay()
    async with running(relay):
        await everything.announce(relay, "new")
        await eventually(everything.is_healed)
    assert curious.idle == 0


async def test_lost_rows_are_deleted_only_after_they_are_published_again(site: Site) -> None:
    await site.acknowledged(2500, age=timedelta(hours=23))
    housekeeping = Housekeeping(site.database, DatabaseClock(), Retention(outbox=timedelta(hours=1)))
    site.broker.wipe()
    relay = site.relay(rate=SLOWLY)
    async with running(relay):
        await eventually(lambda: len(site.broker.events) == PAGE)
        await eventually(lambda: _left(site, 2500 - PAGE, housekeeping))
    async with running(site.relay()):
        await eventually(site.is_healed)
    assert len(site.broker.events) == 2500
    assert await _left(site, 0, housekeeping)


async def _left(site: Site, count: int, housekeeping: Housekeeping) -> bool:
    await housekeeping.step()
    return await site.one("select count(*) from outbox") in range(count, count + 50)
