"""The validity of marks: eras of a stream that has lost messages."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from servicekit.bus.publisher import Outgoing, Stored
from servicekit.bus.stream_view import StreamLook
from servicekit.messaging.eras import EraOver, Eras
from testkit.broker import MemoryBroker
from testkit.clocks import START
from testkit.eventually import eventually
from tests.usecase.servicekit_messaging.sites import PAGE, Site, message_of, running


class Rounds(MemoryBroker):
    """The view of a release whose client rounds times differently."""

    def __init__(self, broker: MemoryBroker, by: timedelta) -> None:
        super().__init__()
        self._broker = broker
        self._by = by

    async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
        return await self._broker.publish(messages)

    async def payload(self, sequence: int) -> bytes | None:
        return await self._broker.payload(sequence)

    async def look(self) -> StreamLook:
        seen = await self._broker.look()
        return StreamLook(seen.created + self._by, seen.first_sequence)


@pytest.mark.parametrize("by", [timedelta(microseconds=-500), timedelta(microseconds=1)])
async def test_releases_that_round_times_differently_agree_about_the_stream(site: Site, by: timedelta) -> None:
    await site.acknowledged(200)
    other = site.relay(broker=Rounds(site.broker, by))
    relay = site.relay()
    async with running(other, relay):
        for turn in range(3):
            await site.announce(relay, f"one {turn}")
            await site.announce(other, f"other {turn}")
            await eventually(lambda: site.is_marked(f"one {turn}"))  # noqa: B023 - awaited at once
            await eventually(lambda: site.is_marked(f"other {turn}"))  # noqa: B023 - awaited at once
            await relay.verify()
            await other.verify()
    assert await site.is_healed()
    assert len(site.broker.events) == 206


async def test_marks_of_an_unrecorded_stream_are_followed_up(site: Site) -> None:
    """Has marks of two streams, left by an older release that stopped midway."""
    await site.acknowledged(3000)
    earlier = START - timedelta(days=1)
    await site._execute("update outbox set stream_time = :earlier where position > 1000", earlier=earlier)
    async with running(site.relay()):
        await eventually(lambda: len(site.broker.events) == 5000)
        await eventually(site.is_healed)


async def test_a_mark_that_comes_too_late_is_refused(site: Site) -> None:
    """Pauses its process while the stream is lost and another process notices it."""
    await site.acknowledged(100)
    slow, relay = site.relay(), site.relay()
    await slow.verify()
    era = slow._era
    assert era
    (row,) = await site._insert(["late"])
    site.broker.wipe()
    await relay.verify()
    with pytest.raises(EraOver):
        await slow._eras.mark(era, [(row.position, 3)])
    assert not await site.is_marked("late")
    async with running(slow):
        await site.announce(slow, "new")
        await eventually(site.is_healed)
    assert len(site.broker.events) == 102


async def test_a_page_that_another_process_has_marked_meanwhile_is_left_alone(site: Site) -> None:
    """Pauses a process until its turn has ended."""
    await site.acknowledged(2000)
    site.broker.wipe()
    slow, other = Eras(site.database), Eras(site.database)
    current = await slow.compare(site.broker)
    for stored in (101, 102):
        unhealed = await slow.unhealed()
        assert unhealed
        page = await slow.lost(unhealed, PAGE)
        await other.republished(page, current, [(row.position, stored) for row in page.rows])
        with pytest.raises(EraOver):
            await slow.republished(page, current, [(row.position, 999) for row in page.rows])
    assert await site.one("select count(*) from outbox where stream_sequence = 999") == 0


async def test_a_page_is_not_marked_when_the_stream_was_lost_again_meanwhile(site: Site) -> None:
    await site.acknowledged(2000)
    site.broker.wipe()
    slow, other = Eras(site.database), Eras(site.database)
    current = await slow.compare(site.broker)
    unhealed = await slow.unhealed()
    assert unhealed
    page = await slow.lost(unhealed, PAGE)
    site.broker.wipe()
    await other.compare(site.broker)
    with pytest.raises(EraOver):
        await slow.republished(page, current, [(row.position, 999) for row in page.rows])
    assert await site.one("select count(*) from outbox where stream_sequence = 999") == 0


async def test_messages_discarded_by_a_limit_are_not_lost(site: Site) -> None:
    await site.acknowledged(500)
    for number in range(20):
        await site.broker.publish([message_of([f"of another service {number}"])])
    site.broker.discard(below=11)
    await site.relay().verify()
    assert await site.one("select count(*) from outbox_era where kept is not null") == 0


async def test_an_era_is_deleted_when_its_rows_are_gone(site: Site) -> None:
    await site.acknowledged(100)
    for _ in range(3):
        site.broker.wipe()
        async with running(site.relay()):
            await eventually(site.is_healed)
        await site._execute("update outbox_era set close_time = close_time - interval '3 days'")
    assert await site.one("select count(*) from outbox_era") == 2


async def test_marks_name_the_time_of_their_stream_before_a_loss(site: Site) -> None:
    """Checks the form that a release before eras writes and reads."""
    relay = site.relay()
    async with running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: site.is_marked("new"))
    assert await site._rows("select stream_time from outbox") == [(START,)]
