"""ShuffleQueue: a random order that its seed determines."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from servicekit.faults import Conflict, NotFound
from testkit.clocks import START
from tests.usecase.queue_service.rearranging import SEED, Rearranging

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)


@pytest.fixture
async def call(queue: "Queue") -> Rearranging:
    await queue.fill_weekly("page", START + HOUR, HOUR, 9)
    queue.now = START
    return Rearranging(queue)


async def test_the_seed_determines_the_order(queue: "Queue", call: Rearranging) -> None:
    before = await call.drafts()
    answer = await call.shuffle(7)
    shuffled = await call.drafts()
    assert sorted(shuffled) == before != shuffled
    assert (answer.seed, answer.etag) == (7, "1")
    times = [queue.time_of(slot) for slot in answer.moved_slots]
    assert times == sorted(times)
    await call.shuffle(8)
    await call.shuffle(7)
    assert await call.drafts() == shuffled


async def test_shuffling_twice_with_a_seed_changes_nothing(call: Rearranging) -> None:
    await call.shuffle(7)
    answer = await call.shuffle(7)
    assert (answer.etag, list(answer.moved_slots)) == ("1", [])


async def test_without_a_seed_one_is_chosen_and_reported(call: Rearranging) -> None:
    assert (await call.shuffle()).seed == SEED


async def test_chosen_times_stay(queue: "Queue", call: Rearranging) -> None:
    await queue.save_draft("chosen", "page")
    await queue.at("chosen", START + 4.5 * HOUR)
    await call.shuffle(7)
    assert (await call.drafts())[4] == "chosen"


async def test_a_repeated_request_shuffles_once(queue: "Queue", call: Rearranging) -> None:
    first = await call.shuffle(7, request_id="r1")
    assert await call.shuffle(7, request_id="r1") == first
    assert await call.etag() == "1"


async def test_an_outdated_etag_is_refused(call: Rearranging) -> None:
    await call.shuffle(7, etag="0")
    with pytest.raises(Conflict):
        await call.shuffle(8, etag="0")


async def test_an_unknown_account_is_refused_and_an_empty_queue_is_not(queue: "Queue", call: Rearranging) -> None:
    queue.accounts.missing.add("nobody")
    with pytest.raises(NotFound) as refused:
        await call.shuffle(account="nobody")
    assert refused.value.reason == "ACCOUNT_NOT_FOUND"
    assert (await call.shuffle(account="new")).etag == "0"
    assert queue.accounts.asked == ["nobody", "new"]
