"""The log of an account agrees with what is used of its caps, however its attempts end."""

from datetime import timedelta

import pytest

from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.read_activity import ReadActivity
from publisher_service.domain.activity import ActivityFilter
from publisher_service.domain.outcome import Accepted, Ambiguous, NotSent
from publisher_service.domain.resolution import Resolution, Said
from testkit.calls import call
from tests.usecase.publisher_service.outreach import Outreach

LOST = Ambiguous(reason="TIMEOUT", message="")


async def read(outreach: Outreach) -> tuple[list[str], int]:
    """Returns the outcomes of the account's log, oldest first, and how many e-mails are used today."""
    use_case = ReadActivity(outreach.replica.database, outreach.clock)
    wanted = ActivityFilter(organization_id="acme", account_id="page")
    found = await use_case.list(wanted, before=None, limit=100)
    usage = await use_case.usage("acme", "page")
    (email,) = [each for each in usage.usages if each.action == "EMAIL"]
    assert email.used == await outreach.used()
    return [each.outcome for each in reversed(found)], email.used


async def test_an_unknown_outcome_counts_until_a_look_proves_it_absent(outreach: Outreach) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    await outreach.settle(claimed, LOST)
    assert await read(outreach) == (["UNKNOWN"], 1)
    outreach.clock.moment += timedelta(minutes=1)
    (question,) = (await outreach.replica.recover()).questions
    await outreach.replica.look_up(question.job)
    assert await read(outreach) == (["UNKNOWN", "ABSENT"], 0)


async def test_a_resend_counts_again_and_once(outreach: Outreach) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    await outreach.settle(claimed, LOST)
    outreach.clock.moment += timedelta(hours=1)
    (question,) = (await outreach.replica.recover()).questions
    await outreach.replica.look_up(question.job)
    outreach.clock.moment += timedelta(hours=1)
    (again,) = await outreach.claim((await outreach.replica.recover()).due)
    await outreach.settle(again)
    assert await read(outreach) == (["UNKNOWN", "ABSENT", "SUCCESS"], 1)


async def test_a_resend_on_another_day_counts_there(outreach: Outreach) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    await outreach.settle(claimed, LOST)
    outreach.clock.moment += timedelta(minutes=1)
    (question,) = (await outreach.replica.recover()).questions
    await outreach.replica.look_up(question.job)
    outreach.clock.moment += timedelta(days=1)
    (again,) = await outreach.claim((await outreach.replica.recover()).due)
    await outreach.settle(again)
    assert await outreach.used() == 1
    (row,) = await outreach.replica.rows("select fence from reservation")
    assert row.fence == again.job.fence


@pytest.mark.parametrize(("said", "outcome", "used"), [("PUBLISHED", "SUCCESS", 1), ("NOT_PUBLISHED", "ABSENT", 0)])
async def test_a_person_gives_a_place_back_or_keeps_it(outreach: Outreach, said: str, outcome: str, used: int) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    await outreach.settle(claimed, LOST)
    resolution = Resolution(
        outcome=Said(said),
        external_id="7" if said == "PUBLISHED" else "",
        external_url="",
        publish_time=None,
        resolver="ann",
        note="",
    )
    await outreach.replica.resolve(call("ResolvePostJob"), claimed.job.id, resolution)
    assert await read(outreach) == (["UNKNOWN", outcome], used)


async def test_a_post_that_a_person_has_to_look_at_keeps_its_place(outreach: Outreach) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    await outreach.settle(claimed, LOST)
    await outreach.replica.write(
        "update post_job set state = 'NEEDS_ATTENTION', next_action_time = null, unknown_until = null"
    )
    assert await read(outreach) == (["UNKNOWN"], 1)


async def test_the_attempt_of_a_lost_process_counts_until_it_is_proven_absent(outreach: Outreach) -> None:
    await outreach.claim(await outreach.save(1))
    outreach.clock.moment += timedelta(hours=1)
    await outreach.replica.recover()
    assert await read(outreach) == (["UNKNOWN"], 1)
    (gate,) = await outreach.replica.rows("select last_outreach_time from account_gate")
    assert gate.last_outreach_time == outreach.now


async def test_late_proof_of_a_failure_gives_a_place_back(outreach: Outreach) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    outreach.clock.moment += timedelta(hours=1)
    await outreach.replica.recover()
    outreach.clock.moment += timedelta(seconds=1)
    await outreach.settle(claimed, NotSent(reason="NO_CONNECTION", message=""))
    assert await read(outreach) == (["UNKNOWN", "ABSENT"], 0)


async def test_late_proof_that_a_post_is_out_takes_its_place_again(outreach: Outreach) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    outreach.clock.moment += timedelta(minutes=10)
    await outreach.replica.recover()
    outreach.clock.moment += timedelta(minutes=1)
    (question,) = (await outreach.replica.recover()).questions
    await outreach.replica.look_up(question.job)
    assert await outreach.used() == 0
    await outreach.settle(claimed, Accepted(external_id="7", external_url=""))
    assert await read(outreach) == (["UNKNOWN", "ABSENT", "SUCCESS"], 1)


async def test_proof_of_the_first_attempt_counts_a_run_once(outreach: Outreach) -> None:
    (first,) = await outreach.claim(await outreach.save(1))
    outreach.clock.moment += timedelta(minutes=10)
    await outreach.replica.recover()
    outreach.clock.moment += timedelta(minutes=1)
    (question,) = (await outreach.replica.recover()).questions
    await outreach.replica.look_up(question.job)
    outreach.clock.moment += timedelta(hours=1)
    (second,) = await outreach.claim((await outreach.replica.recover()).due)
    assert second.job.fence == 2
    await outreach.settle(first, Accepted(external_id="7", external_url=""))
    assert await outreach.used() == 1
    await outreach.settle(second, Accepted(external_id="7", external_url=""))
    assert (await read(outreach))[1] == 1


async def test_a_claim_whose_commit_failed_gives_its_place_back(outreach: Outreach) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    (row,) = await outreach.replica.rows("select sender from attempt")
    await outreach.replica.disown(FailedClaim(sender=row.sender, jobs=[claimed.job.key]))
    assert await read(outreach) == ([], 0)
