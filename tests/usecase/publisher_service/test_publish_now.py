"""PublishNow: what it starts goes out at once, before the line; what it refuses stays as it was."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.domain.claim import Claimed
from publisher_service.domain.outcome import Ambiguous, RateLimited, Rejected
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.post_job import Target
from publisher_service.domain.publish_now import UrgentPost
from publisher_service.domain.take_back import CancelOutcome
from servicekit.faults import Refused
from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import (
    DUE,
    FAR,
    Replica,
    a_command,
    a_draft,
    a_sent,
    a_slot_post,
    claims_in,
)


def outcomes(results: Sequence[UrgentPost]) -> list[str]:
    return [each.reason or "STARTED" for each in results]


def a_slot(draft: str, *, revision: int = 1, account: str = "", sequence: int = 0, slot: str = "slot") -> Slot:
    return Slot(
        organization_id="acme",
        slot_id=slot,
        sequence=sequence,
        revision=revision,
        draft_id=draft,
        targets=(Target(social_account_id=account or f"page-{draft}", channel="facebook"),),
        schedule_time=FAR - timedelta(days=1),
        not_after=FAR,
        target_month="2126-03-01",
        traceparent="",
    )


def the_draft(name: str = "d0", account: str = "", *, version: int = 1, revision: int = 1) -> SavedDraft:
    return replace(a_draft(name, account or f"page-{name}", version=version), revision=revision)


async def stored_rows(replica: Replica) -> list[object]:
    statements = ("select * from post_job", "select * from content", "select * from outbox")
    return [await replica.rows(statement) for statement in statements]


async def claim_own(replica: Replica) -> list[Claimed]:
    """Sweeps, and claims what the sweep hands on."""
    return claims_in(await replica.claim((await replica.recover()).due))


async def test_a_draft_without_a_slot_is_sent_at_once(replica: Replica) -> None:
    await replica.posts(1)
    (result,) = await replica.publish(the_draft())
    assert (result.reason, result.job.state, result.job.is_sent_now, result.job.run) == ("", "READY", True, 1)
    assert result.job.schedule_time is not None
    assert result.job.not_after == result.job.schedule_time + timedelta(hours=1)
    (claimed,) = await claim_own(replica)
    assert claimed.job.is_sent_now
    await replica.settle([a_sent(claimed)])
    assert await replica.states() == {"PUBLISHED": 1}
    assert outcomes(await replica.publish(the_draft())) == ["ALREADY_PUBLISHED"]


async def test_a_slot_in_the_future_does_not_keep_it_back(replica: Replica) -> None:
    await replica.posts(1)
    await replica.take(a_slot("d0"))
    (result,) = await replica.publish(the_draft())
    assert (result.job.slot_id, result.job.slot_revision) == ("slot", 1)
    (claimed,) = await claim_own(replica)
    assert claimed.job.slot_id == "slot"


async def test_a_draft_that_no_event_has_announced_is_stored_and_sent(replica: Replica) -> None:
    await replica.posts(1)
    await replica.write("delete from post_job")
    await replica.write("delete from content")
    assert outcomes(await replica.publish(the_draft())) == ["STARTED"]
    assert len(await claim_own(replica)) == 1
    before = await replica.rows("select * from content")
    await replica.save(the_draft())
    assert await replica.rows("select * from content") == before
    assert await replica.states() == {"SENDING": 1}


@pytest.mark.parametrize("event_first", [False, True])
async def test_a_newer_text_is_sent_whether_its_event_came_or_not(replica: Replica, event_first: bool) -> None:
    await replica.posts(1)
    newer = replace(the_draft(version=2, revision=2), content=b"newer")
    if event_first:
        await replica.save(newer)
    await replica.publish(newer)
    if not event_first:
        await replica.save(newer)
    (claimed,) = await claim_own(replica)
    assert (claimed.content, claimed.job.content_revision) == (b"newer", 2)


@pytest.mark.parametrize(
    ("stored", "asked", "below", "reason"),
    [
        (the_draft(version=3, revision=2), the_draft(version=2), 0, "REVISION_OUTDATED"),
        (the_draft(), replace(the_draft(version=2), approved=False), 0, "NOT_APPROVED"),
        # The event that took the approval back is newer than the request.
        (replace(the_draft(version=3), approved=False), the_draft(version=2), 0, "NOT_APPROVED"),
        (the_draft(), the_draft(version=2), 2, "CONTENT_WITHDRAWN"),
    ],
)
async def test_content_that_may_not_be_sent_is_refused_without_a_trace(
    replica: Replica, stored: SavedDraft, asked: SavedDraft, below: int, reason: str
) -> None:
    await replica.posts(1)
    await replica.save(stored)
    if below:
        await replica.withdraw("acme", "d0", below)
    before = await stored_rows(replica)
    with pytest.raises(Refused) as refused:
        await replica.publish(asked)
    assert refused.value.reason == reason
    assert await stored_rows(replica) == before
    assert await claim_own(replica) == []


async def test_a_revision_above_the_withdrawn_ones_is_sent(replica: Replica) -> None:
    await replica.posts(1)
    await replica.withdraw("acme", "d0", 2)
    assert outcomes(await replica.publish(the_draft(version=2, revision=2))) == ["STARTED"]
    assert len(await claim_own(replica)) == 1


async def test_each_target_has_its_own_outcome(replica: Replica) -> None:
    names = [f"page-{number}" for number in range(4)]
    for name in names:
        await replica.posts(1, account=name)
    targets = tuple(Target(social_account_id=name, channel="facebook") for name in [*names, "nowhere"])
    draft = replace(a_draft("many", "", version=1), targets=targets)
    await replica.save(draft)
    (claimed,) = claims_in(await replica.claim([a_command("many", "page-1")]))
    await replica.settle([a_sent(claimed)])
    await replica.claim([a_command("many", "page-2")])
    await replica.hold("page-3")
    before = {row.id: row for row in await replica.rows("select * from post_job")}
    results = await replica.publish(draft)
    assert outcomes(results) == [
        "STARTED",
        "ALREADY_PUBLISHED",
        "ATTEMPT_OPEN",
        "ACCOUNT_ON_HOLD",
        "ACCOUNT_NOT_CONNECTED",
    ]
    after = {row.id: row for row in await replica.rows("select * from post_job")}
    assert all((before[each.job.id] == after[each.job.id]) == bool(each.reason) for each in results)
    only = await replica.publish(draft, targets[4], targets[0])
    assert outcomes(only) == ["ACCOUNT_NOT_CONNECTED", "STARTED"]


async def test_doubt_and_questions_are_refused(replica: Replica, hasty: Replica) -> None:
    await replica.posts(2)
    (first,) = claims_in(await replica.claim([a_command("d0")]))
    await replica.settle([a_sent(first, Ambiguous(reason="LOST", message=""))])
    assert outcomes(await replica.publish(the_draft("d0"))) == ["ATTEMPT_OPEN"]
    await hasty.claim([a_command("d1")])
    await replica.recover()
    for question in (await replica.recover()).questions:
        await replica.look_up(question.job)
    (waiting,) = await replica.rows("select * from post_job where draft_id = 'd1'")
    assert (waiting.state, waiting.in_doubt) == ("WAITING", True)
    assert outcomes(await replica.publish(the_draft("d1"))) == ["ATTEMPT_OPEN"]
    await replica.write(
        "update post_job set state = 'NEEDS_ATTENTION', state_reason = '', next_action_time = null"
        " where draft_id = 'd1'"
    )
    assert outcomes(await replica.publish(the_draft("d1"))) == ["NEEDS_ATTENTION"]


@pytest.mark.parametrize("state", ["FAILED", "MISSED", "CANCELED TAKEN_BACK"])
async def test_the_next_run_of_what_has_ended_is_sent(replica: Replica, state: str) -> None:
    await replica.posts(1)
    match state:
        case "FAILED":
            (claimed,) = claims_in(await replica.claim([a_command("d0")]))
            await replica.settle([a_sent(claimed, Rejected(reason="REJECTED", message=""))])
        case "MISSED":
            await replica.claim([replace(a_command("d0"), not_after=DUE)])
        case _:
            await replica.take_back(a_slot_post("d0"))
    assert await replica.states() == {state: 1}
    await replica.publish(the_draft())
    (claimed,) = await claim_own(replica)
    assert (claimed.job.run, claimed.idempotency_key) == (2, f"{claimed.job.id}-2")


async def test_it_goes_before_the_line_of_its_account(replica: Replica) -> None:
    await replica.posts(5, account="page")
    (first,) = claims_in(await replica.claim([a_command(f"d{number}", "page") for number in range(4)]))
    assert outcomes(await replica.publish(the_draft("d4", "page"))) == ["STARTED"]
    # Another post of the account is out: it waits, as the first of the line.
    assert await claim_own(replica) == []
    await replica.settle([a_sent(first)])
    order = []
    while claimed := await replica.next_in_line():
        order += [each.job.draft_id for each in claimed]
        await replica.settle([a_sent(each) for each in claimed])
    assert order[0] == "d4"
    assert sorted(order) == sorted({"d0", "d1", "d2", "d3", "d4"} - {first.job.draft_id})
    assert await replica.rows("select 1 from account_gate where lined or wake_time is not null") == []


async def test_it_passes_a_line_whose_account_is_free(replica: Replica) -> None:
    await replica.posts(3, account="page")
    (first,) = claims_in(await replica.claim([a_command(f"d{number}", "page") for number in range(2)]))
    await replica.settle([a_sent(first)])
    await replica.publish(the_draft("d2", "page"))
    (urgent,) = await claim_own(replica)
    assert urgent.job.draft_id == "d2"
    assert await replica.next_in_line() == []
    await replica.settle([a_sent(urgent)])
    (last,) = await replica.next_in_line()
    assert {last.job.draft_id, first.job.draft_id} == {"d0", "d1"}


async def test_it_waits_while_the_provider_asked_for_a_pause(replica: Replica) -> None:
    await replica.posts(2, account="page")
    (first,) = claims_in(await replica.claim([a_command("d0", "page")]))
    await replica.settle([a_sent(first, RateLimited(message="", retry_after=timedelta(hours=1)))])
    assert outcomes(await replica.publish(the_draft("d1", "page"))) == ["STARTED"]
    assert await claim_own(replica) == []
    await replica.write("update account_gate set resume_time = :due, wake_time = :due", due=DUE)
    (urgent,) = await replica.next_in_line()
    assert urgent.job.draft_id == "d1"


async def test_commands_and_slots_that_come_meanwhile_change_nothing(replica: Replica) -> None:
    await replica.posts(1)
    await replica.take(a_slot("d0"))
    await replica.publish(the_draft())
    late = replace(a_command("d0"), schedule_time=DUE, not_after=DUE)
    assert claims_in(await replica.claim([late])) == []
    await replica.take(a_slot("d0", revision=2))
    await replica.drop(a_slot_post("d0", revision=3))
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.slot_revision, job.schedule_time < FAR - timedelta(days=2)) == ("READY", 3, True)
    (result,) = await replica.take_back(a_slot_post("d0", revision=3))
    assert result.outcome is CancelOutcome.TOO_LATE
    assert len(await claim_own(replica)) == 1


async def test_what_is_stopped_after_the_call_is_not_sent(replica: Replica) -> None:
    await replica.posts(2)
    await replica.publish(the_draft("d0"))
    await replica.publish(the_draft("d1"))
    assert (await replica.hold("page-d0")).in_flight == ()
    assert (await replica.withdraw("acme", "d1", 2)).in_flight == ()
    assert await claim_own(replica) == []
    assert await replica.states() == {"BLOCKED ACCOUNT_ON_HOLD": 1, "BLOCKED WITHDRAWN": 1}
    await replica.release()
    (claimed,) = await replica.next_in_line()
    assert (claimed.job.draft_id, claimed.job.is_sent_now) == ("d0", True)


async def test_concurrent_and_repeated_calls_send_once(replica: Replica, another: Replica) -> None:
    await replica.posts(10)
    drafts = [the_draft(f"d{number}") for number in range(10)]

    async def publish(mine: Replica, draft: SavedDraft, request: str) -> None:
        await mine.publish(draft, request_id=request)
        await mine.claim((await mine.recover()).due)

    async with asyncio.TaskGroup() as group:
        for draft in drafts:
            for number, mine in enumerate((replica, another, replica, another)):
                group.create_task(publish(mine, draft, f"{draft.draft_id}-{number % 3}"))
            group.create_task(replica.save(draft))

    async def all_claimed() -> bool:
        # A post that a claim found locked is handed on again after five seconds.
        await claim_own(replica)
        return await replica.states() == {"SENDING": 10}

    await eventually(all_claimed)
    assert [row.n for row in await replica.rows("select count(*) as n from attempt group by post_job_id")] == [1] * 10
    (counted,) = await replica.rows("select deadlocks from pg_stat_database where datname = current_database()")
    assert counted.deadlocks == 0


async def test_a_repeat_has_the_first_answer(replica: Replica) -> None:
    await replica.posts(1)
    first = await replica.publish(the_draft(), request_id="r")
    (claimed,) = await claim_own(replica)
    await replica.settle([a_sent(claimed)])
    assert await replica.publish(the_draft(), request_id="r") == first
    assert await replica.states() == {"PUBLISHED": 1}
