import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from drafts_service.application.update_draft import INTENDED, WITHDRAWN
from drafts_service.domain.draft import Change
from drafts_service.domain.post_job import JobState, PostJobEvent
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED
from postflow.drafts.v1.drafts_service_pb2 import UpdateDraftResponse
from servicekit import failpoints
from servicekit.faults import Fault, Refused, Unavailable
from servicekit.pg.database import Database
from tests.usecase.drafts_service.withdrawals import NINE, ADraft, Announced, Approve, Get, Update, out, pending


@pytest.fixture
def armed() -> Iterator[Callable[[str], None]]:
    yield lambda specification: failpoints.install(specification, "test")
    failpoints.install("", "test")


def only_b() -> Change:
    return Change(targets=(Target(social_account_id="b", channel="facebook"),))


@pytest.mark.parametrize("change", [Change(text="new"), only_b()], ids=["content", "targets"])
async def test_an_approved_draft_is_changed_after_the_withdrawal(
    a_draft: ADraft,
    update_draft: Update,
    publisher: Any,
    database: Database,
    announced: Announced,
    change: Change,
) -> None:
    await a_draft(text="old", approved=True)
    publisher.in_flight = ("job-1", "job-2")
    answer = await update_draft(change=change)
    assert publisher.asked == [("draft", 2)]
    assert publisher.seen == [("old", True, 2)]
    assert list(answer.in_flight_post_job_ids) == ["job-1", "job-2"]
    assert await pending(database) is None
    saved = (await announced())[-1]
    assert (saved.revision, saved.approved) == (2, change.text is None)
    assert (answer.draft.revision, answer.draft.approved) == (2, change.text is None)


async def test_a_published_draft_is_not_changed_and_its_post_is_named(
    a_draft: ADraft,
    update_draft: Update,
    get_draft: Get,
    publisher: Any,
    database: Database,
    announced: Announced,
) -> None:
    before = await a_draft(text="old", approved=True)
    publisher.published = (out(),)
    for _ in range(2):
        with pytest.raises(Refused) as refusal:
            await update_draft(change=Change(text="new"), request_id="request")
        assert refusal.value.reason == "DRAFT_PUBLISHED"
        assert refusal.value.metadata == {
            "draft_id": "draft",
            "post_job_id": "draft-a",
            "external_url": "https://social.example/1",
            "publish_time": NINE.isoformat(),
        }
    assert publisher.asked == [("draft", 2)]  # the second refusal needs no call: the first answer was stored
    after = await get_draft()
    assert (after.content.text, after.approved, after.etag) == ("old", True, before.etag)
    assert after.state == DRAFT_STATE_PUBLISHED
    assert after.publish_time.ToDatetime(UTC) == NINE
    assert await pending(database) is None
    # An earlier call may have forbidden revision 1 before anything was out; the remaining targets have revision 2.
    saved = (await announced())[-1]
    assert (saved.revision, saved.content_digest, saved.approved) == (2, before.content_digest, True)


async def test_an_event_of_a_post_known_from_an_answer_changes_nothing(
    a_draft: ADraft,
    update_draft: Update,
    get_draft: Get,
    publisher: Any,
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
) -> None:
    await a_draft(approved=True)
    publisher.published = (out(),)
    with pytest.raises(Refused):
        await update_draft(change=Change(text="new"))
    known = await get_draft()
    await reflect(a_job(JobState.READY, version=2), a_job(JobState.SENDING, version=3))
    assert await get_draft() == known
    await reflect(
        a_job(JobState.PUBLISHED, version=4, publish_time=NINE, external_url="https://social.example/1"),
    )
    assert await get_draft() == known


async def test_every_edit_asks_publisher_until_no_older_text_is_in_flight(
    a_draft: ADraft, update_draft: Update, publisher: Any
) -> None:
    await a_draft(approved=True)
    publisher.in_flight = ("job",)
    for number in (1, 2):
        answer = await update_draft(change=Change(text=f"new {number}"))
        assert list(answer.in_flight_post_job_ids) == ["job"]
    publisher.in_flight = ()
    for number in (3, 4):
        answer = await update_draft(change=Change(text=f"new {number}"))
        assert list(answer.in_flight_post_job_ids) == []
    assert publisher.asked == [("draft", below) for below in (2, 3, 4)]


async def test_a_post_that_goes_out_after_one_edit_refuses_the_next(
    a_draft: ADraft, update_draft: Update, get_draft: Get, publisher: Any
) -> None:
    await a_draft(text="old", approved=True)
    publisher.in_flight = ("draft-a",)
    await update_draft(change=Change(text="new"))
    publisher.in_flight, publisher.published = (), (out(),)
    with pytest.raises(Refused) as refusal:
        await update_draft(change=Change(text="newer"))
    assert refusal.value.reason == "DRAFT_PUBLISHED"
    assert (await get_draft()).content.text == "new"


async def test_an_edit_that_changes_nothing_names_the_jobs_in_flight(
    a_draft: ADraft, update_draft: Update, publisher: Any, announced: Announced
) -> None:
    await a_draft(text="old", approved=True)
    publisher.in_flight = ("job",)
    before = (await update_draft(change=Change(text="same"))).draft
    answer = await update_draft(change=Change(text="same"))
    assert (answer.draft, list(answer.in_flight_post_job_ids)) == (before, ["job"])
    assert publisher.asked == [("draft", 2), ("draft", 2)]
    assert len(await announced()) == 3


async def test_the_draft_is_unchanged_while_publisher_is_down(
    a_draft: ADraft,
    update_draft: Update,
    get_draft: Get,
    publisher: Any,
    database: Database,
    announced: Announced,
) -> None:
    before = await a_draft(text="old", approved=True)
    publisher.unreachable_for = {"draft"}
    with pytest.raises(Unavailable) as refusal:
        await update_draft(change=Change(text="new"), request_id="request")
    assert (refusal.value.reason, refusal.value.retry_after) == ("WITHDRAW_PENDING", timedelta(seconds=2))
    assert refusal.value.metadata == {"draft_id": "draft", "revision": "2"}
    assert await pending(database) == 2
    assert await get_draft() == before
    assert len(await announced()) == 2


async def test_a_repeat_makes_the_edit_and_another_gets_its_answer(
    a_draft: ADraft, update_draft: Update, publisher: Any, database: Database, announced: Announced
) -> None:
    etag = (await a_draft(approved=True)).etag
    publisher.unreachable_for = {"draft"}
    with pytest.raises(Unavailable):
        await update_draft(etag=etag, change=Change(text="new"), request_id="request")
    publisher.unreachable_for = set()
    publisher.in_flight = ("job",)
    answer = await update_draft(etag=etag, change=Change(text="new"), request_id="request")
    assert (answer.draft.content.text, answer.draft.revision, list(answer.in_flight_post_job_ids)) == (
        "new",
        2,
        ["job"],
    )
    assert await pending(database) is None
    publisher.in_flight = ()
    assert await update_draft(etag=etag, change=Change(text="new"), request_id="request") == answer
    assert publisher.asked == [("draft", 2), ("draft", 2)]
    assert len(await announced()) == 3


async def test_concurrent_duplicates_of_a_request_get_one_answer(
    a_draft: ADraft, update_draft: Update, publisher: Any, announced: Announced
) -> None:
    await a_draft(approved=True)
    publisher.hold = hold = asyncio.Event()
    publisher.in_flight = ("was in flight",)

    async def call() -> UpdateDraftResponse:
        return await update_draft(change=Change(text="new"), request_id="request")

    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(call())]
        await publisher.held.wait()
        publisher.in_flight = ()
        calls += [group.create_task(call()) for _ in range(4)]
        await asyncio.wait(calls[1:])
        hold.set()
    assert len({call.result().SerializeToString(deterministic=True) for call in calls}) == 1
    assert len(await announced()) == 3


async def test_the_slower_of_two_edits_is_made_on_top_of_the_other(
    a_draft: ADraft,
    update_draft: Update,
    approve_draft: Approve,
    get_draft: Get,
    publisher: Any,
    database: Database,
) -> None:
    await a_draft(approved=True)
    publisher.hold = hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(update_draft(change=Change(text="slow")))
        await publisher.held.wait()
        await update_draft(change=Change(text="quick"))
        await approve_draft(approver="bob")
        hold.set()
    # Withdrawing below 2 is no longer enough: revision 2 has been approved meanwhile.
    assert publisher.asked == [("draft", 2), ("draft", 2), ("draft", 3)]
    assert (slow.result().draft.content.text, slow.result().draft.revision) == ("slow", 3)
    after = await get_draft()
    assert (after.content.text, after.approved) == ("slow", False)
    assert await pending(database) is None


async def test_only_one_of_two_edits_with_the_same_etag_is_made(
    a_draft: ADraft, update_draft: Update, get_draft: Get, publisher: Any, database: Database
) -> None:
    etag = (await a_draft(approved=True)).etag
    publisher.hold = hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(outcome(update_draft(etag=etag, change=Change(text="slow"))))
        await publisher.held.wait()
        await update_draft(etag=etag, change=Change(text="quick"))
        hold.set()
    assert slow.result() == "ETAG_MISMATCH"
    assert (await get_draft()).content.text == "quick"
    assert await pending(database) is None


async def test_an_edit_refused_after_the_withdrawal_leaves_the_draft_free(
    a_draft: ADraft,
    update_draft: Update,
    approve_draft: Approve,
    get_draft: Get,
    publisher: Any,
    database: Database,
    announced: Announced,
) -> None:
    """Approves revision 2 while Publisher forbids it for an edit that is then refused."""
    await a_draft(text="old", approved=True)
    publisher.in_flight = ("job",)
    etag = (await update_draft(change=Change(text="new"))).draft.etag
    publisher.hold = hold = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        edit = group.create_task(outcome(update_draft(etag=etag, change=Change(text="newer"))))
        await publisher.held.wait()
        await approve_draft(approver="bob")
        hold.set()
    assert edit.result() == "ETAG_MISMATCH"
    after = await get_draft()
    assert (after.content.text, after.approved, after.revision) == ("new", True, 3)
    saved = (await announced())[-1]
    assert (saved.revision, saved.approved, saved.content_digest) == (3, True, after.content_digest)
    assert await pending(database) is None


@pytest.mark.parametrize("failpoint", [INTENDED, WITHDRAWN])
async def test_a_repeat_alone_completes_a_call_that_died_in_between(
    a_draft: ADraft,
    update_draft: Update,
    publisher: Any,
    database: Database,
    armed: Callable[[str], None],
    failpoint: str,
) -> None:
    before = await a_draft(text="old", approved=True)
    armed(f"{failpoint}=raise")
    with pytest.raises(failpoints.FailpointHit):
        await update_draft(etag=before.etag, change=Change(text="new"), request_id="request")
    armed("")
    publisher.in_flight = ("job",)
    answer = await update_draft(etag=before.etag, change=Change(text="new"), request_id="request")
    assert (answer.draft.content.text, list(answer.in_flight_post_job_ids)) == ("new", ["job"])
    assert await pending(database) is None


async def test_an_edit_waits_for_the_last_announcement_to_arrive(
    a_draft: ADraft, update_draft: Update, publisher: Any
) -> None:
    await a_draft(approved=True)
    publisher.uninformed = 2
    answer = await update_draft(change=Change(text="new"))
    assert answer.draft.content.text == "new"
    assert publisher.asked == [("draft", 2)] * 3


async def test_an_edit_racing_an_approval_leaves_no_unread_content_approved(
    a_draft: ADraft,
    update_draft: Update,
    approve_draft: Approve,
    get_draft: Get,
    publisher: Any,
) -> None:
    won = {"approval first": 0, "change first": 0}
    for number in range(400):
        if number >= 20 and all(won.values()):
            break
        name = f"draft-{number}"
        before = await a_draft(name)
        approval = approve_draft(draft_id=name, content_digest=before.content_digest)
        change = update_draft(draft_id=name, change=Change(text="new"))
        async with asyncio.TaskGroup() as group:
            tasks = [outcome(approval), outcome(change)]
            first, second = (group.create_task(each) for each in (tasks if number % 2 else tasks[::-1]))
        approved = "APPROVED" in {first.result(), second.result()}
        won["approval first" if approved else "change first"] += 1
        after = await get_draft(name)
        assert (after.content.text, after.approved) == ("new", False)
        assert ((name, 2) in publisher.asked) is approved
    assert all(won.values()), won


async def outcome(call: Awaitable[object]) -> str:
    try:
        return type(await call).__name__.removesuffix("DraftResponse").upper() + "D"
    except Fault as fault:
        return fault.reason


async def test_a_new_time_leaves_open_whether_an_older_text_is_out(
    a_draft: ADraft, update_draft: Update, publisher: Any, database: Database
) -> None:
    await a_draft(approved=True)
    publisher.in_flight = ("job",)
    await update_draft(change=Change(text="new"))
    asked = list(publisher.asked)
    await update_draft(change=Change(category_id="news"))
    assert publisher.asked == asked
    async with database.read() as connection:
        row = (await connection.execute(text("select exposed, revision from draft"))).one()
    assert (row.exposed, row.revision) == (True, 2)
    await update_draft(change=Change(text="new", category_id="sport"))
    assert publisher.asked != asked
