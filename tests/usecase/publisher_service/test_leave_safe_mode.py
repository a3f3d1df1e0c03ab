"""The safe mode is left once every post in question has its answer, or is left to a person."""

import pytest

from servicekit.faults import Refused
from testkit.calls import call
from tests.usecase.publisher_service.replica import Replica, a_command, claims_in
from tests.usecase.publisher_service.restoring import leave, leaving, reconcile, restored, scheduled


async def test_proven_absent_posts_go_out_after_the_safe_mode_and_not_before(replica: Replica) -> None:
    await scheduled(replica, 1)
    await restored(replica)
    await reconcile(replica)
    found = await replica.recover()
    for question in found.questions:
        await replica.look_up(question.job)
    assert await replica.states() == {"WAITING RETRY": 1}
    assert claims_in(await replica.claim([a_command("d0")])) == []
    left, summary = await leave(replica)
    assert (left.active, left.left_by, summary.absent, summary.open) == (False, "ann", 1, 0)
    (claimed,) = claims_in(await replica.claim([a_command("d0")]))
    assert claimed.idempotency_key == f"{claimed.job.id}-1"
    assert claimed.job.in_doubt


async def test_the_safe_mode_is_left_with_force_alone_while_outcomes_are_open(replica: Replica) -> None:
    await scheduled(replica, 1)
    await restored(replica)
    with pytest.raises(Refused, match="not reconciled") as refused:
        await leave(replica, force=True)
    assert refused.value.reason == "RECONCILIATION_OPEN"
    await reconcile(replica)
    with pytest.raises(Refused, match="not reconciled"):
        await leave(replica)
    _, summary = await leave(replica, force=True)
    assert summary.needs_attention == 1
    assert await replica.states() == {"NEEDS_ATTENTION": 1}
    with pytest.raises(Refused) as again:
        await leave(replica)
    assert again.value.reason == "NOT_IN_SAFE_MODE"


async def test_any_number_of_open_outcomes_is_left_to_a_person(replica: Replica) -> None:
    await scheduled(replica, 1100)
    await restored(replica)
    await reconcile(replica)
    _, summary = await leave(replica, force=True)
    assert summary.needs_attention == 1100
    assert await replica.states() == {"NEEDS_ATTENTION": 1100}


async def test_a_repeated_call_gives_up_nothing_of_a_later_restore(replica: Replica) -> None:
    await scheduled(replica, 1)
    await restored(replica)
    await reconcile(replica)
    again = call("LeaveSafeMode", organization_id="", request_id="leave")
    first = await leaving(replica)(again, "ann", force=True)
    await replica.write("update post_job set state = 'UNKNOWN', next_action_time = update_time, state_reason = ''")
    await replica.write("update safe_mode set active = true, leave_time = null")
    assert await leaving(replica)(again, "ann", force=True) == first
    assert await replica.states() == {"UNKNOWN": 1}


async def test_after_the_safe_mode_the_same_marks_are_no_longer_ahead(replica: Replica, another: Replica) -> None:
    await restored(replica)
    await reconcile(replica)
    await leave(replica)
    another.marks.learn(replica.marks.known.values())
    await replica.posts(1)
    assert claims_in(await another.claim([a_command("d0")]))
