"""One post that cannot be recorded harms no other, and what may be out is sent again with its own bytes only."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from testkit.eventually import eventually

Start = Callable[..., AbstractAsyncContextManager[Any]]


async def test_an_answer_that_cannot_be_stored_is_set_aside_and_the_others_are_recorded(start: Start) -> None:
    async with start(unknown_settle=timedelta(seconds=60)) as rig:
        for number in range(4):
            await rig.connect(f"page-{number}")
        async with rig.database.transaction() as tx:
            await tx.connection.execute(
                text("alter table post_job add constraint odd check (state <> 'PUBLISHED' or draft_id <> 'd2')")
            )
        due = rig.clock.now() + timedelta(seconds=1)
        for number in range(4):
            await rig.save_draft(f"d{number}", f"page-{number}")
            await rig.go(f"d{number}", account=f"page-{number}", due=due)
        for number in (0, 1, 3):
            await rig.in_state("PUBLISHED", f"d{number}", f"page-{number}")
        job = await rig.in_state("UNKNOWN", "d2", "page-2")
        assert (job.error_reason, job.in_doubt) == ("NOT_RECORDED", True)


async def test_a_resend_carries_the_bytes_that_may_be_out_although_the_text_has_changed(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "hang_without_effect", "count": 1})
        await rig.save_draft("d1", said="first")
        await rig.go("d1")
        await rig.in_state("SENDING", "d1")
        await rig.save_draft("d1", said="second", revision=2)
        job = await rig.in_state("PUBLISHED", "d1")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["first"]
        attempts = await rig.attempts(job)
        assert [attempt.state for attempt in attempts] == ["ABSENT", "ACCEPTED"]
        assert len({(attempt.content_digest, attempt.idempotency_key) for attempt in attempts}) == 1
        assert job.content_revision == 1


async def test_a_text_that_may_be_out_and_is_withdrawn_is_sent_no_more_nor_is_a_newer_one(start: Start) -> None:
    async with start(retry_first=timedelta(seconds=3)) as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "reset_before_effect", "count": 1})
        await rig.save_draft("d1", said="first")
        await rig.go("d1")
        await rig.in_state("WAITING", "d1")
        await rig.withdraw("d1", below=2)
        await rig.save_draft("d1", said="second", revision=2)
        job = await rig.in_state("NEEDS_ATTENTION", "d1", within=20)
        assert "withdrawn" in job.error_message
        assert rig.sandbox.effects() == []


async def test_a_post_without_its_times_is_put_off_and_does_not_fill_every_sweep(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("odd")
        await rig.schedule("odd", rig.clock.now() + timedelta(days=1))
        await rig.in_state("SCHEDULED", "odd")
        await rig.write("update post_job set state = 'READY', next_action_time = now(), not_after = null")
        job = await eventually(lambda: put_off(rig))
        assert (job.state, job.version) == ("READY", 2)
        await rig.save_draft("even")
        await rig.go("even")
        await rig.in_state("PUBLISHED", "even")


async def test_a_line_goes_on_behind_a_post_without_its_times(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.8, "count": 1})
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


async def put_off(rig: Any) -> Any:
    job = await rig.job("odd")
    assert job.next_action_time > rig.clock.now()
    return job


async def test_a_content_that_cannot_be_read_is_set_aside_and_others_go_out(start: Start) -> None:
    async with start() as rig:
        for page in ("page", "other"):
            await rig.connect(page)
        await rig.save_draft("odd")
        await rig.save_draft("even", "other")
        await eventually(lambda: announced(rig, 2))
        await rig.write("update content set content = '\\x0a' where draft_id = 'odd'")
        await rig.go("odd")
        job = await rig.in_state("FAILED", "odd")
        assert job.error_reason == "CONTENT_UNREADABLE"
        await rig.go("even", account="other")
        await rig.in_state("PUBLISHED", "even", "other")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["hello"]


async def announced(rig: Any, drafts: int) -> bool:
    return len(await rig.rows("select 1 from content")) == drafts
