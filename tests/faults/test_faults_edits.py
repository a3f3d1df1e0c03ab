"""Authors edit drafts around their due time: an OK never conceals an older text that is out."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import grpc
import pytest

from devstack.stack import Stack
from servicekit.clock import SystemClock
from testkit.stack.posting import Posting

DRAFTS = [f"post-{number}" for number in range(60)]
CHANNELS = ("facebook", "instagram_feed")


async def _until(moment: datetime) -> None:
    await asyncio.sleep(max((moment - SystemClock().now()).total_seconds(), 0))


async def _change(posting: Posting, draft: str, text: str) -> Sequence[str] | None:
    """Returns the jobs in flight, or None if the draft can no longer be changed because it is out."""
    try:
        return await posting.change_text(draft, text)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
            raise
        return None


async def test_an_edit_at_the_due_time_names_what_is_out(stack: Stack, posting: Posting) -> None:
    """Edits each draft while its post is sent, or while the event of that is on its way to Drafts."""
    await posting.prepare(*DRAFTS)
    first = SystemClock().now() + timedelta(seconds=3)
    dues = {draft: first + timedelta(seconds=0.1 * number) for number, draft in enumerate(DRAFTS)}
    await posting.schedule_each(dues)

    async def edit(number: int, draft: str) -> None:
        await _until(dues[draft] + timedelta(seconds=number % 10 * 0.008 - 0.01))
        if await _change(posting, draft, f"Newer text of {draft}") is not None:
            await posting.approve(draft)

    async with asyncio.TaskGroup() as group:
        for number, draft in enumerate(DRAFTS):
            group.create_task(edit(number, draft))
    await posting.check_all_published()


async def test_a_second_edit_names_what_is_still_in_flight(stack: Stack, posting: Posting) -> None:
    for draft in DRAFTS[:5]:
        account = posting.tenant.external(f"of-{draft}")
        await stack.sandbox.mode(account, "lookup")
    await stack.sandbox.faults({"fault": "slow", "seconds": 4})
    due = await posting.schedule(*DRAFTS[:5], ahead=1)
    await _until(due + timedelta(seconds=0.3))

    async def edit_twice(draft: str) -> None:
        first = await _change(posting, draft, f"Second text of {draft}")
        assert first
        assert await _change(posting, draft, f"Third text of {draft}") == first

    async with asyncio.TaskGroup() as group:
        for draft in DRAFTS[:5]:
            group.create_task(edit_twice(draft))
    await stack.sandbox.clear_faults()
    await posting.check()


@pytest.mark.parametrize("pause", [0.0, 0.5])
async def test_a_target_removed_and_put_back_goes_out(stack: Stack, posting: Posting, pause: float) -> None:
    drafts = DRAFTS[:8]
    await posting.prepare(*drafts, channels=CHANNELS)
    await posting.schedule_each(dict.fromkeys(drafts, SystemClock().now() + timedelta(seconds=5)))
    for draft in drafts:
        await posting.remove_channels(draft, "instagram_feed", left=["facebook"])
    await asyncio.sleep(pause)
    for draft in drafts:
        await posting.put_channels(draft, *CHANNELS)
        await posting.approve(draft)
    history = await posting.check_all_published()
    assert len(history.effects) == len(drafts) * 2
