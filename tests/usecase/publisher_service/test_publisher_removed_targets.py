"""A target that was taken off its draft gets nothing, whatever else still asks for it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

from testkit.eventually import eventually

Start = Callable[..., AbstractAsyncContextManager[Any]]


async def test_a_slot_that_comes_after_its_target_was_removed_sends_nothing(start: Start) -> None:
    async with start() as rig:
        await rig.connect("page")
        await rig.connect("other")
        await rig.save_draft("d1", "page", "other")
        await rig.in_state("PENDING", "d1", "other")
        # Only the targets change: the approval of the text stays.
        await rig.save_draft("d1", "page", revision=2)
        await rig.in_state("CANCELED", "d1", "other")

        slot = await rig.go("d1", account="other")

        ended = await rig.in_state("CANCELED", "d1", "other")
        await rig.go("d1", revision=2)
        await rig.in_state("PUBLISHED", "d1")
        ended = await rig.in_state("CANCELED", "d1", "other")
        assert ended.slot_id == slot  # so that Queue hears an answer for it
        assert [effect["account"] for effect in rig.sandbox.effects()] == ["ext-page"]


async def test_a_slot_for_a_target_that_was_removed_since_ends_at_once(start: Start) -> None:
    async with start() as rig:
        await rig.connect("other")
        await rig.save_draft("d1", "page", "other")
        await rig.in_state("PENDING", "d1", "other")
        await rig.save_draft("d1", "page", revision=2)
        await rig.in_state("CANCELED", "d1", "other")
        slot = await rig.schedule("d1", rig.clock.now() + timedelta(hours=1), account="other", knowing=1)

        async def has_ended() -> bool:
            job = await rig.job("d1", "other")
            return (job.slot_id, job.state) == (slot, "CANCELED")

        await eventually(has_ended)
        assert (await rig.told("d1"))[-1].post_job.slot_id == slot


async def test_news_from_before_a_target_was_added_leave_its_slot_alone(start: Start) -> None:
    async with start() as rig:
        await rig.connect("other")
        await rig.save_draft("d1", "page", approved=False)
        due = rig.clock.now()
        slot = await rig.schedule("d1", due, account="other", knowing=2)
        await rig.in_state("SCHEDULED", "d1", "other")
        await rig.save_draft("d1", "page", version=2)

        async def is_heard() -> bool:
            (content,) = await rig.rows("select version from content")
            return bool(content.version == 2)

        await eventually(is_heard)
        assert (await rig.job("d1", "other")).state == "SCHEDULED"
        await rig.save_draft("d1", "page", "other", revision=2, version=3)
        await rig.command("d1", slot, due, account="other", revision=2)
        await rig.in_state("PUBLISHED", "d1", "other")
        assert "CANCELED" not in await rig.kinds("d1")
