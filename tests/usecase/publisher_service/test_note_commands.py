"""Commands say which version of a job Queue knows: a database that lacks it is an older copy."""

from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.application.claim_jobs import Retry
from publisher_service.domain.claim import Command
from tests.usecase.publisher_service.replica import DUE, FAR, Replica, a_command, claims_in
from tests.usecase.publisher_service.restoring import leave, reconcile, restored, scheduled, shown

WAITS = Retry(timedelta(seconds=5))


def knowing(draft: str, version: int, **changes: object) -> Command:
    return replace(a_command(draft), known_job_version=version, emission=2, **changes)  # type: ignore[arg-type]


async def test_a_command_that_knows_a_newer_version_stops_its_whole_batch(replica: Replica) -> None:
    await replica.posts(2)
    assert await replica.claim([a_command("d0"), knowing("d1", 9)]) == [WAITS, WAITS]
    assert (await shown(replica))[0].reason == "COMMAND_AHEAD"
    assert await replica.states() == {"PENDING": 2}
    assert await replica.rows("select * from attempt") == []


async def test_a_command_that_knows_a_job_the_copy_lacks_stops_its_whole_batch(replica: Replica) -> None:
    await replica.posts(1)
    assert await replica.claim([a_command("d0"), knowing("lost", 2)]) == [WAITS, WAITS]
    assert (await shown(replica))[0].reason == "COMMAND_AHEAD"
    assert await replica.rows("select * from attempt") == []


async def test_a_command_that_knows_what_is_stored_stops_nothing(replica: Replica) -> None:
    await replica.posts(1)
    (row,) = await replica.rows("select version from post_job")
    assert len(claims_in(await replica.claim([knowing("d0", row.version)]))) == 1


async def test_versions_rise_above_what_queue_knows(replica: Replica) -> None:
    await scheduled(replica, 1, due=FAR - timedelta(days=1))
    await restored(replica)
    await reconcile(replica)
    assert await replica.claim([knowing("d0", 1 << 40)]) == [WAITS]
    (row,) = await replica.rows("select version from post_job")
    assert row.version > 1 << 40


async def test_a_post_that_the_copy_lacks_is_made_and_looked_up_if_it_may_be_out(replica: Replica) -> None:
    await restored(replica)
    await reconcile(replica)
    assert claims_in(await replica.claim([knowing("lost", 2)])) == []
    assert await replica.claim([knowing("lost", 2)]) == [WAITS]
    assert await replica.states() == {"UNKNOWN": 1}
    _, summary = await shown(replica)
    assert (summary.open, summary.recreated) == (1, 1)
    # The same command changes nothing more.
    assert await replica.claim([knowing("lost", 2)]) == [WAITS]
    assert len(await replica.rows("select * from attempt")) == 1


async def test_a_post_that_the_copy_lacks_and_that_is_due_later_is_only_made(replica: Replica) -> None:
    await restored(replica)
    await reconcile(replica)
    later = knowing("lost", 2, schedule_time=FAR - timedelta(days=1))
    for _ in range(2):
        assert claims_in(await replica.claim([later])) == []
    assert await replica.states() == {"SCHEDULED": 1}


async def test_a_post_that_the_copy_lacks_may_be_older_than_its_row(replica: Replica) -> None:
    """A provider that lists its posts is asked for those since the attempt began: a later time would hide the post."""
    await restored(replica)
    await reconcile(replica)
    for _ in range(2):
        assert claims_in(await replica.claim([knowing("lost", 2)])) == []
    (attempt,) = await replica.rows("select start_time from attempt")
    assert attempt.start_time <= DUE


@pytest.mark.parametrize("state", ["FAILED", "MISSED", "CANCELED"])
async def test_the_next_run_of_an_ended_post_is_looked_up_if_it_may_be_out(replica: Replica, state: str) -> None:
    """Queue has given it another slot after the copy, of which only the command is left."""
    (name,) = await scheduled(replica, 1)
    await replica.write("update post_job set state = :state, error_reason = 'REJECTED'", state=state)
    await restored(replica)
    await reconcile(replica)
    assert await replica.states() == {state: 1}
    again = knowing(name, 0, slot_id="slot-2", slot_sequence=2)
    assert await replica.claim([again]) == [WAITS]
    assert await replica.states() == {"UNKNOWN": 1}
    (attempt,) = await replica.rows("select run, idempotency_key from attempt")
    assert (attempt.run, attempt.idempotency_key[-2:]) == (2, "-2")
    await replica.claim([again])
    assert len(await replica.rows("select * from attempt")) == 1


async def test_a_command_of_the_slot_of_an_ended_run_begins_no_other(replica: Replica) -> None:
    """The number of a slot that was taken over from an announcement is not known."""
    (name,) = await scheduled(replica, 1)
    await replica.write("update post_job set state = 'FAILED', error_reason = 'REJECTED'")
    await restored(replica)
    await reconcile(replica)
    assert await replica.claim([knowing(name, 0, slot_sequence=7)]) == [WAITS]
    assert await replica.states() == {"FAILED": 1}


async def test_a_lost_post_is_looked_up_even_after_the_safe_mode(replica: Replica) -> None:
    await restored(replica)
    await reconcile(replica)
    await leave(replica)
    assert claims_in(await replica.claim([knowing("lost", 0)])) == []
    assert claims_in(await replica.claim([knowing("lost", 0)])) == []
    assert await replica.states() == {"UNKNOWN": 1}
