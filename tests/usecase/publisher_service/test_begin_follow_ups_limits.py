"""Comments pass over window, spacing and caps, and use up nothing of them: caps of posts are exact without them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from channels import Action
from publisher_service.adapters.postgres.account_caps import reserve_earlier_posts
from publisher_service.domain.claim import Command
from publisher_service.domain.outcome import Ambiguous
from publisher_service.domain.post_job import Target
from tests.usecase.publisher_service.follow_ups import (
    COMMENTS,
    claim_part,
    claim_post,
    commented,
    content_of,
    jobs,
    publish,
    settle,
    states,
    write,
)
from tests.usecase.publisher_service.outreach import Outreach
from tests.usecase.publisher_service.replica import DUE, Replica, a_command, claims_in

CAPPED = """
    insert into account_action (organization_id, social_account_id, action, cap)
    select organization_id, social_account_id, 'POST', 1 from account_gate
"""
LIMITED = "update account_gate set limited = true, post_spacing = interval '1 hour'"


async def used(replica: Replica) -> int:
    (row,) = await replica.rows("select used from account_action where action = 'POST'")
    return int(row.used)


async def test_comments_use_up_nothing_of_the_cap_of_posts(replica: Replica) -> None:
    await write(replica)
    await replica.write(CAPPED)
    await replica.write(LIMITED)
    await publish(replica)
    (before,) = await replica.rows("select last_post_time from account_gate")
    assert await used(replica) == 1
    for _ in COMMENTS:
        await replica.begin_follow_ups()
        await settle(replica, await claim_part(replica))
    assert await states(replica) == ["PUBLISHED"] * 3
    assert await used(replica) == 1
    assert len(await replica.rows("select * from reservation")) == 1
    (after,) = await replica.rows("select last_post_time from account_gate")
    assert after.last_post_time == before.last_post_time, "the next post waits no longer"


async def test_a_comment_whose_outcome_is_looked_up_counts_for_nothing(replica: Replica) -> None:
    await write(replica)
    await replica.write(CAPPED)
    await replica.write(LIMITED)
    await publish(replica)
    await replica.begin_follow_ups()
    await settle(replica, await claim_part(replica), Ambiguous(reason="CONNECTION_LOST", message="reset"))
    (question,) = (await replica.recover()).questions
    await replica.look_up(question.job)
    await settle(replica, await claim_part(replica))
    assert await states(replica) == ["PUBLISHED", "PUBLISHED", "PENDING"]
    assert await used(replica) == 1
    assert len(await replica.rows("select * from reservation")) == 1


async def test_a_comment_goes_while_the_window_is_closed(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    closed = "update account_gate set open_from = now() + interval '1 day', open_until = now() + interval '2 days'"
    await replica.write(closed)
    await replica.begin_follow_ups()
    assert (await claim_part(replica)).job.part == 1


async def test_a_cap_that_is_set_later_counts_no_comments(replica: Replica) -> None:
    await write(replica)
    await publish(replica, parts=3)
    async with replica.database.transaction() as tx:
        await reserve_earlier_posts(tx.connection, ("acme", "page-d0"), since=DUE)
    (reserved,) = await replica.rows("select post_job_id from reservation")
    assert reserved.post_job_id == (await jobs(replica))[0].id


async def test_comments_are_activities_of_their_account(replica: Replica) -> None:
    await write(replica)
    await publish(replica, parts=2)
    logged = await replica.rows("select action, outcome from activity order by create_time")
    assert [(row.action, row.outcome) for row in logged] == [("POST", "SUCCESS")] * 2


async def test_a_comment_goes_before_the_line_of_its_account(replica: Replica) -> None:
    await replica.posts(1, account="page")
    await replica.save(commented("d0", "one", account="page"), commented("d1", account="page"))
    (post,) = claims_in(await replica.claim([a_command("d0", "page")]))
    await replica.claim([a_command("d1", "page")])
    await settle(replica, post)
    await replica.begin_follow_ups()
    assert (await claim_part(replica)).job.part == 1
    assert [row.state for row in await replica.rows("select state from post_job where draft_id = 'd1'")] == ["READY"]


@pytest.fixture
def mail() -> Target:
    return Target(social_account_id="page", channel="email", destination="ann@example.com")


async def test_a_follow_up_to_a_person_counts_like_a_message(outreach: Outreach, mail: Target) -> None:
    replica = outreach.replica
    content = content_of("again", channel="email")
    draft = replace(commented("d0", account="page"), targets=(mail,), content=content, follow_ups={"email": 1})
    await replica.save(draft, now=outreach.now)
    command: Command = replace(a_command("d0", "page"), target=mail, schedule_time=outreach.now)
    (claimed,) = await outreach.claim([command])
    await outreach.settle(claimed)
    assert await replica.begin_follow_ups()
    (due,) = (await replica.recover()).due
    assert not await outreach.claim([due]), "its account has sent a message a short while ago"
    follow_up = (await jobs(replica))[1]
    assert (follow_up.state, follow_up.state_reason, follow_up.over_cap) == ("WAITING", "SPACING", False)
    rows = await replica.rows("select used from account_action where action = :action", action=Action.EMAIL)
    assert [row.used for row in rows] == [1]
    assert follow_up.not_after - follow_up.schedule_time >= timedelta(days=1)


async def test_a_follow_up_is_not_sent_without_what_it_follows(replica: Replica) -> None:
    """A process may hold the command of a comment while its database is replaced by an older copy."""
    await write(replica)
    await claim_post(replica)
    held = replace(a_command("d0"), part=1, slot_id="", slot_revision=0, emission=0)
    assert claims_in(await replica.claim([held])) == []
    assert await states(replica) == ["SENDING", "PENDING", "PENDING"]
