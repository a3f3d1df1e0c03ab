"""Commands that the stream brings once more, or late: they start nothing that a newer one has replaced."""

from dataclasses import replace
from datetime import timedelta

from publisher_service.domain.outcome import Rejected
from publisher_service.domain.plan import Slot
from publisher_service.domain.post_job import Target
from tests.usecase.publisher_service.replica import DUE, FAR, Replica, a_command, a_draft, a_sent, claims_in

REFUSED = Rejected(reason="STATUS_422", message="no")


def a_slot(draft: str, *, revision: int) -> Slot:
    return Slot(
        organization_id="acme",
        slot_id="slot",
        sequence=0,
        revision=revision,
        draft_id=draft,
        targets=(Target(social_account_id=f"page-{draft}", channel="facebook"),),
        schedule_time=DUE,
        not_after=FAR,
        target_month="",
        traceparent="",
    )


async def test_a_command_of_an_older_revision_of_its_slot_sends_nothing(replica: Replica) -> None:
    await replica.posts(1)
    await replica.take(a_slot("d0", revision=2))
    assert claims_in(await replica.claim([a_command("d0")])) == []
    assert await replica.states() == {"SCHEDULED": 1}
    (claimed,) = claims_in(await replica.claim([replace(a_command("d0"), slot_revision=2)]))
    assert claimed.job.slot_revision == 2


async def test_a_copy_of_a_command_whose_run_has_failed_begins_no_other(replica: Replica) -> None:
    await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command("d0")]))
    await replica.settle([a_sent(claimed, REFUSED)])
    assert claims_in(await replica.claim([replace(a_command("d0"), emission=2)])) == []
    assert await replica.states() == {"FAILED": 1}


async def test_a_copy_of_a_command_neither_sends_nor_ends_the_run_of_a_call(replica: Replica) -> None:
    await replica.posts(1)
    command = replace(a_command("d0"), not_after=DUE + timedelta(hours=1))
    (claimed,) = claims_in(await replica.claim([replace(command, not_after=FAR)]))
    await replica.settle([a_sent(claimed, REFUSED)])
    job = await replica.retry(claimed.job.id)
    assert claims_in(await replica.claim([command])) == []
    assert (await replica.states(), job.run) == ({"READY": 1}, 2)


async def test_a_post_that_loses_its_approval_in_line_is_not_sent(replica: Replica) -> None:
    names = await replica.posts(2, account="page")
    (first,) = claims_in(await replica.claim([a_command(name, "page") for name in names]))
    (waiting,) = {*names} - {first.job.draft_id}
    await replica.save(a_draft(waiting, "page", approved=False, version=2))
    await replica.settle([a_sent(first)])
    assert await replica.next_in_line() == []
    assert await replica.states() == {"PUBLISHED": 1, "BLOCKED NOT_APPROVED": 1}
