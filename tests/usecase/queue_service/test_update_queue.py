"""Setting up a queue: late policy and pace."""

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.domain.late_policy import LateAction, LatePolicy
from servicekit.faults import Conflict, NotFound
from testkit.clocks import START
from tests.usecase.queue_service.pausing import FEED, Pausing, dispatched
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
GRACE = timedelta(minutes=3)
MISS = LatePolicy(grace=GRACE, action=LateAction.MISS)


@pytest.fixture
def pausing(queue: "Queue") -> Pausing:
    return Pausing(queue)


async def limits(queue: "Queue") -> set[timedelta]:
    return {row.limit for row in await queue.rows("select not_after - schedule_time as limit from slot")}


async def test_only_what_is_given_changes(queue: "Queue", pausing: Pausing) -> None:
    first = (await pausing.update(late_policy=MISS)).queue
    assert (first.late_policy.grace.ToTimedelta(), first.late_policy.action) == (GRACE, 3)
    assert first.pace.ToTimedelta() == timedelta(minutes=5)
    second = (await pausing.update(pace=HOUR)).queue
    assert (second.late_policy, second.pace.ToTimedelta()) == (first.late_policy, HOUR)
    assert (first.etag, second.etag) == ("1", "2")
    assert (await pausing.update(pace=HOUR, late_policy=MISS)).queue.etag == "2"


async def test_a_stale_etag_is_refused(queue: "Queue", pausing: Pausing) -> None:
    await pausing.update(pace=HOUR, etag="0")
    with pytest.raises(Conflict) as refused:
        await pausing.update(pace=2 * HOUR, etag="0")
    assert (refused.value.reason, refused.value.metadata["etag"]) == ("ETAG_MISMATCH", "1")


async def test_a_repeated_request_gets_its_first_answer(queue: "Queue", pausing: Pausing) -> None:
    first = await pausing.update(pace=HOUR, etag="0", request_id="r1")
    assert await pausing.update(pace=HOUR, etag="0", request_id="r1") == first


async def test_an_account_that_publisher_does_not_know_is_refused(queue: "Queue", pausing: Pausing) -> None:
    queue.accounts.missing.add("page")
    with pytest.raises(NotFound) as refused:
        await pausing.update(pace=HOUR)
    assert refused.value.reason == "ACCOUNT_NOT_FOUND"


async def test_slots_get_the_latest_times_of_a_new_policy_and_the_old_one_back(
    queue: "Queue", pausing: Pausing
) -> None:
    await queue.fill("page", START + HOUR, timedelta(minutes=2), 1200)
    await pausing.update(late_policy=MISS)
    assert await limits(queue) == {GRACE}
    await pausing.update(late_policy=LatePolicy(action=LateAction.RESLOT))
    assert await limits(queue) == {timedelta(hours=24)}


async def test_dispatched_slots_and_other_accounts_keep_their_latest_times(queue: "Queue", pausing: Pausing) -> None:
    await dispatched(queue)
    await queue.fill("other", START + HOUR, timedelta(minutes=2), 2)
    await pausing.update(late_policy=MISS)
    assert await limits(queue) == {timedelta(hours=24)}


async def test_new_slots_have_the_latest_time_of_the_policy(queue: "Queue", pausing: Pausing) -> None:
    await pausing.update(late_policy=MISS)
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    assert await limits(queue) == {GRACE}
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert command.not_after == START + GRACE


async def test_moved_slots_have_the_latest_times_of_the_policy(queue: "Queue", pausing: Pausing) -> None:
    await pausing.update(late_policy=MISS)
    await queue.fill("page", START + HOUR, HOUR, 2)
    await Rearranging(queue).reorder(drafts=("page-1", "page-0"))
    assert await limits(queue) == {GRACE}
    assert [moved.not_after.ToDatetime(UTC) - moved.schedule_time.ToDatetime(UTC) for moved in await queue.moves()] == [
        GRACE,
        GRACE,
    ]
