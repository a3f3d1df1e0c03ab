"""Posts that cannot go at once wait in the line of their account: in order, unpolled, and in nobody's way."""

from collections import Counter
from datetime import timedelta

from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1 import publisher_events_pb2
from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start


async def announced(rig: Rig) -> Counter[str]:
    """Counts the events in the outbox by type."""
    return Counter(
        event.type.rpartition(".")[2]
        for row in await rig.rows("select payload from outbox")
        for event in bus_pb2.Envelope.FromString(row.payload).events
    )


async def accepted(rig: Rig) -> set[str]:
    """Returns the drafts whose commands were accepted in batches."""
    messages = [
        publisher_events_pb2.CommandsAccepted.FromString(event.payload)
        for row in await rig.rows("select payload from outbox")
        for event in bus_pb2.Envelope.FromString(row.payload).events
        if event.type == publisher_events_pb2.CommandsAccepted.DESCRIPTOR.full_name
    ]
    return {command.draft_id for message in messages for command in message.commands}


async def test_a_long_line_does_not_hold_up_other_accounts(start: Start) -> None:
    async with start() as rig:
        for account in ("busy", "other"):
            await rig.connect(account)
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.05})
        due = rig.clock.now() + timedelta(seconds=4)
        names = await rig.post_many(400, account="busy", due=due)
        await rig.post_many(1, account="other", prefix="other-", due=due)
        await rig.in_state("PUBLISHED", "other-0", "other", within=30)
        before = [effect for effect in rig.sandbox.effects() if effect["account"] == "ext-busy"]
        # The busy account sends twenty a second, one after the other.
        assert len(before) < 40
        assert len(names) > 300


async def test_waiting_in_line_is_announced_in_batches_and_polls_nothing(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.9, "count": 3})
        await rig.post_many(60, due=rig.clock.now() + timedelta(seconds=4))
        await rig.all_in("READY", 59, reason="IN_LINE")
        waiting = await rig.rows("select version, next_action_time, not_after from post_job where state = 'READY'")
        assert all(row.next_action_time == row.not_after for row in waiting)
        stream = await rig.client.jetstream().stream_info("PUBLISH")
        assert stream.state.messages <= 1, "only the command of what is being sent is still in the stream"
        assert (await accepted(rig)) >= {f"d{number}" for number in range(60)} - {await _out(rig)}
        assert (await announced(rig))["CommandsAccepted"] <= 10
        await rig.sandbox.clear_faults()
        await rig.all_in("PUBLISHED", 60)
        attempts = await rig.rows("select start_time from attempt")
        assert len(attempts) == 60
        await eventually(lambda: _no_line_is_looked_at(rig))


async def test_a_line_is_sent_in_order_of_schedule_time(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        now = rig.clock.now()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.8, "count": 1})
        await rig.save_draft("first")
        await rig.go("first", due=now)
        await rig.in_state("SENDING", "first")
        for minutes in (3, 1, 2):
            await rig.save_draft(f"d{minutes}")
            await rig.go(f"d{minutes}", due=now - timedelta(minutes=minutes))
        await rig.all_in("PUBLISHED", 4)
        effects = [effect["text"] for effect in rig.sandbox.effects()]
        assert len(effects) == 4
        rows = await rig.rows(
            "select draft_id from attempt a join post_job j on j.id = a.post_job_id order by start_time"
        )
        assert [row.draft_id for row in rows] == ["first", "d3", "d2", "d1"]


async def test_a_line_goes_on_in_the_next_process(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.2})
        await rig.post_many(12, due=rig.clock.now() + timedelta(seconds=1))
        await rig.all_in("PUBLISHED", 2)
    async with start() as rig:
        await rig.all_in("PUBLISHED", 12)
        assert Counter(effect["idempotency_key"] for effect in rig.sandbox.effects()).most_common(1)[0][1] == 1


async def test_a_rate_limit_pauses_the_whole_line(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 429, "retry_after": 2, "count": 1})
        await rig.post_many(20)
        await rig.all_in("PUBLISHED", 20)
        limited = await rig.rows("select * from activity where outcome = 'RATE_LIMITED'")
        assert len(limited) == 1, "the others have not asked"
        first, *others = sorted(row.start_time for row in await rig.rows("select start_time from attempt"))
        assert others[0] >= first + timedelta(seconds=1.9)


async def test_a_post_in_line_is_missed_at_its_latest_time(start: Start) -> None:
    async with start(request_timeout=timedelta(seconds=20)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 4, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("SENDING", "d1")
        await rig.save_draft("d2")
        due = rig.clock.now()
        slot = await rig.schedule("d2", due)
        await rig.command("d2", slot, due, not_after=due + timedelta(seconds=1))
        await rig.in_state("MISSED", "d2")
        await rig.in_state("PUBLISHED", "d1")
        assert len(rig.sandbox.effects()) == 1


async def test_a_wait_beyond_the_latest_time_ends_there_as_missed(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 429, "retry_after": 3600, "count": 1})
        await rig.save_draft("d1")
        due = rig.clock.now()
        slot = await rig.schedule("d1", due)
        await rig.command("d1", slot, due, not_after=due + timedelta(seconds=3))
        job = await rig.in_state("WAITING", "d1")
        assert (job.state_reason, job.next_action_time) == ("RATE_LIMITED", job.not_after)
        await rig.in_state("MISSED", "d1")


async def test_a_line_goes_on_behind_a_post_without_its_times(start: Start) -> None:
    async with start(request_timeout=timedelta(seconds=20)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 3, "count": 1})
        await rig.save_draft("first")
        await rig.go("first")
        await rig.in_state("SENDING", "first")
        for minutes, name in ((2, "broken"), (1, "sound")):
            await rig.save_draft(name)
            await rig.go(name, due=rig.clock.now() - timedelta(minutes=minutes))
            await rig.in_state("READY", name)
        await rig.write("update post_job set not_after = null where draft_id = 'broken'")
        await rig.in_state("PUBLISHED", "sound")
        await rig.in_state("READY", "broken")


async def _out(rig: Rig) -> str:
    (row,) = await rig.rows("select draft_id from post_job where state = 'SENDING'")
    draft: str = row.draft_id
    return draft


async def _no_line_is_looked_at(rig: Rig) -> bool:
    return not await rig.rows("select 1 from account_gate where lined or wake_time is not null")
