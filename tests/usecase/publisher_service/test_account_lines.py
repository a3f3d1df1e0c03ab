"""What cannot go at once waits in the line of its account: in order, at no cost, and in nobody else's way."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1 import publisher_events_pb2
from testkit.eventually import eventually

Start = Callable[..., AbstractAsyncContextManager[Any]]
ORGANIZATION = "acme"


async def announced(rig: Any) -> Counter[str]:
    """How many events of each type stand in the outbox."""
    return Counter(
        event.type.rpartition(".")[2]
        for row in await rig.rows("select payload from outbox")
        for event in bus_pb2.Envelope.FromString(row.payload).events
    )


async def accepted(rig: Any) -> set[str]:
    """The drafts whose commands were answered together."""
    messages = [
        publisher_events_pb2.CommandsAccepted.FromString(event.payload)
        for row in await rig.rows("select payload from outbox")
        for event in bus_pb2.Envelope.FromString(row.payload).events
        if event.type == publisher_events_pb2.CommandsAccepted.DESCRIPTOR.full_name
    ]
    return {command.draft_id for message in messages for command in message.commands}


async def all_in(rig: Any, state: str, count: int, *, reason: str = "", within: float = 60) -> None:
    async def reached() -> bool:
        rows = await rig.rows("select state, state_reason, count(*) as n from post_job group by 1, 2")
        found = {(row.state, row.state_reason): row.n for row in rows}
        assert found.get((state, reason), 0) == count, found
        return True

    await eventually(reached, within=within)


async def posts(rig: Any, count: int, *, account: str = "page", prefix: str = "d", due: Any = None) -> list[str]:
    """So many posts of one account, all due at the same instant; slots and commands are announced too."""
    names = [f"{prefix}{number}" for number in range(count)]
    due = due or rig.clock.now()
    for name in names:
        await rig.save_draft(name, account)
    slots = {name: await rig.schedule(name, due, account=account) for name in names}
    for name, slot in slots.items():
        await rig.command(name, slot, due, account=account)
    return names


async def test_a_long_line_keeps_no_other_account_waiting(start: Start) -> None:
    async with start() as rig:
        for account in ("busy", "other"):
            await rig.connect(account)
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.05})
        due = rig.clock.now() + timedelta(seconds=4)
        names = await posts(rig, 400, account="busy", due=due)
        await posts(rig, 1, account="other", prefix="other-", due=due)
        await rig.in_state("PUBLISHED", "other-0", "other", within=30)
        before = [effect for effect in rig.sandbox.effects() if effect["account"] == "ext-busy"]
        # The busy account sends twenty a second, one after the other.
        assert len(before) < 40
        assert len(names) > 300


async def test_waiting_in_line_is_answered_together_and_polls_nothing(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.9, "count": 3})
        await posts(rig, 60, due=rig.clock.now() + timedelta(seconds=2))
        await all_in(rig, "READY", 59, reason="IN_LINE")
        waiting = await rig.rows("select version, next_action_time, not_after from post_job where state = 'READY'")
        assert all(row.next_action_time == row.not_after for row in waiting)
        stream = await rig.client.jetstream().stream_info("PUBLISH")
        assert stream.state.messages <= 1, "only the command of what is being sent is still in the stream"
        assert (await accepted(rig)) >= {f"d{number}" for number in range(60)} - {await _out(rig)}
        assert (await announced(rig))["CommandsAccepted"] <= 10
        await rig.sandbox.clear_faults()
        await all_in(rig, "PUBLISHED", 60)
        attempts = await rig.rows("select start_time from attempt")
        assert len(attempts) == 60
        await eventually(lambda: _no_line_is_looked_at(rig))


async def test_a_line_is_taken_in_the_order_of_its_times(start: Start) -> None:
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
        await all_in(rig, "PUBLISHED", 4)
        effects = [effect["text"] for effect in rig.sandbox.effects()]
        assert len(effects) == 4
        rows = await rig.rows(
            "select draft_id from attempt a join post_job j on j.id = a.post_job_id order by start_time"
        )
        assert [row.draft_id for row in rows] == ["first", "d3", "d2", "d1"]


async def test_a_line_whose_process_dies_goes_on_with_the_next(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.2})
        await posts(rig, 12, due=rig.clock.now() + timedelta(seconds=1))
        await all_in(rig, "PUBLISHED", 2)
    async with start() as rig:
        await all_in(rig, "PUBLISHED", 12)
        assert Counter(effect["idempotency_key"] for effect in rig.sandbox.effects()).most_common(1)[0][1] == 1


async def test_a_line_that_nothing_would_wake_goes_on(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.9, "count": 1})
        await posts(rig, 3)
        await all_in(rig, "READY", 2, reason="IN_LINE")
        await rig.write("update account_gate set lined = false")
        await all_in(rig, "PUBLISHED", 1)
    async with start() as rig:
        await all_in(rig, "PUBLISHED", 3)


async def test_a_pause_that_the_provider_asks_for_holds_the_whole_line(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 429, "retry_after": 2, "count": 1})
        await posts(rig, 20)
        await all_in(rig, "PUBLISHED", 20)
        limited = await rig.rows("select * from activity where outcome = 'RATE_LIMITED'")
        assert len(limited) == 1, "the others have not asked"
        first, *others = sorted(row.start_time for row in await rig.rows("select start_time from attempt"))
        assert others[0] >= first + timedelta(seconds=1.9)


async def test_an_account_with_many_blocked_posts_is_connected_at_once(start: Start) -> None:
    async with start() as rig:
        await posts(rig, 500)
        await all_in(rig, "BLOCKED", 500, reason="ACCOUNT_NOT_CONNECTED")
        # Some answer takes its time, so that the line is still long when it is shown as one.
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.4, "count": 4})
        await rig.connect()

        async def shown() -> bool:
            rows = await rig.rows("select 1 from post_job where state_reason = 'ACCOUNT_NOT_CONNECTED'")
            return not rows

        await eventually(shown)
        await all_in(rig, "PUBLISHED", 500)
        assert len(await rig.rows("select 1 from attempt")) == 500


async def test_a_line_of_a_disconnected_account_shows_why_it_waits(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 401, "count": 1})
        await posts(rig, 30)
        await all_in(rig, "BLOCKED", 30, reason="ACCOUNT_NOT_CONNECTED")
        await rig.connect()
        await all_in(rig, "PUBLISHED", 30)


async def test_what_waits_in_line_is_missed_at_its_latest_time(start: Start) -> None:
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


async def test_what_waits_for_longer_than_its_latest_time_is_missed_then(start: Start) -> None:
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


async def test_an_account_of_a_provider_that_this_release_lacks_waits_and_harms_nobody(start: Start) -> None:
    async with start() as rig:
        for account in ("page", "later"):
            await rig.connect(account)
        await rig.rows("update social_account set provider = 'of-a-newer-release' where id = 'later' returning 1")
        await rig.rows(
            "update account_gate set provider = 'of-a-newer-release' where social_account_id = 'later' returning 1"
        )
        await posts(rig, 3, account="later", prefix="later-")
        await posts(rig, 3)
        for number in range(3):
            await rig.in_state("PUBLISHED", f"d{number}")
            waiting = await rig.in_state("READY", f"later-{number}", "later")
            assert waiting.state_reason == "IN_LINE"
        await rig.rows("update social_account set provider = 'sandbox' where id = 'later' returning 1")
        await rig.rows("update account_gate set provider = 'sandbox' where social_account_id = 'later' returning 1")
        await all_in(rig, "PUBLISHED", 6)


async def test_a_command_whose_events_are_lost_makes_its_job_and_ends(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        due = rig.clock.now() - timedelta(seconds=5)
        await rig.command("d1", "slot", due, not_after=due + timedelta(seconds=8))
        job = await rig.in_state("WAITING", "d1")
        assert (job.state_reason, job.slot_id, job.next_action_time) == ("CONTENT_PENDING", "slot", job.not_after)
        await rig.in_state("MISSED", "d1")
        assert (await rig.kinds("d1"))[-1] == "MISSED"
        assert rig.sandbox.effects() == []


async def test_a_command_after_its_latest_time_is_answered_whatever_is_known(start: Start) -> None:
    async with start() as rig:
        due = rig.clock.now() - timedelta(days=3)
        await rig.command("d1", "slot", due, emission=7, not_after=due + timedelta(days=1))
        await rig.in_state("MISSED", "d1")
        assert (await rig.kinds("d1"))[-1] == "MISSED"


async def test_a_text_that_comes_after_its_command_goes_out_and_only_then(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        due = rig.clock.now() - timedelta(seconds=5)
        await rig.command("d1", "slot", due, revision=2)
        await rig.in_state("WAITING", "d1")
        await rig.save_draft("d1", said="old", revision=1)
        await rig.save_draft("d1", said="new", revision=2)
        await rig.in_state("PUBLISHED", "d1")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["new"]


async def test_a_newer_slot_with_a_smaller_id_goes_out(start: Start) -> None:
    """Ids come from the clocks of processes, the number from Queue's database."""
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        await rig.sandbox.faults({"fault": "status", "status": 400, "count": 1})
        rig.sequences |= {"slot-9": 1, "slot-1": 2}
        now = rig.clock.now()
        await rig.schedule("d1", now, slot="slot-9")
        await rig.command("d1", "slot-9", now)
        await rig.in_state("FAILED", "d1")
        await rig.schedule("d1", now, slot="slot-1")
        await rig.command("d1", "slot-1", now)
        job = await rig.in_state("PUBLISHED", "d1")
        assert (job.run, job.slot_id) == (2, "slot-1")


async def test_a_target_that_comes_back_goes_out_with_its_slot(start: Start) -> None:
    async with start() as rig:
        for account in ("page", "other"):
            await rig.connect(account)
        await rig.save_draft("d1", "page", "other", version=1)
        due = rig.clock.now() + timedelta(seconds=3)
        slot = rig.new_slot()
        both = rig.scheduled("d1", slot, due)
        both.targets.add(social_account_id="other", channel="facebook")
        await rig.announce("queue", "slot", both, ORGANIZATION)
        for account in ("page", "other"):
            await rig.in_state("SCHEDULED", "d1", account)
        await rig.save_draft("d1", "page", version=2)
        await rig.in_state("CANCELED", "d1", "other")
        await rig.save_draft("d1", "page", "other", version=3)
        await rig.command("d1", slot, due)
        for account in ("page", "other"):
            await rig.in_state("PUBLISHED", "d1", account)
        assert len(rig.sandbox.effects()) == 2


async def _out(rig: Any) -> str:
    (row,) = await rig.rows("select draft_id from post_job where state = 'SENDING'")
    draft: str = row.draft_id
    return draft


async def _no_line_is_looked_at(rig: Any) -> bool:
    return not await rig.rows("select 1 from account_gate where lined or wake_time is not null")
