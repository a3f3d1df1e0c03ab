"""A target that was taken off its draft gets nothing, whatever else still asks for it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

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
