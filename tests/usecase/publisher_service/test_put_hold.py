"""PutHold: after its answer nothing of the account starts, except what the answer lists."""

import asyncio
import logging
import random
from datetime import timedelta

import pytest

from publisher_service.adapters.postgres.claim import claim
from publisher_service.domain.hold import Scope, WantedHold
from publisher_service.domain.outcome import RateLimited
from servicekit.faults import Refused
from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import (
    DUE,
    FAR,
    Replica,
    a_command,
    a_second_attempt,
    a_sent,
    claims_in,
)
from tests.usecase.publisher_service.rig import Start


async def test_a_post_of_a_held_account_is_blocked(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    assert (await replica.hold(f"page-{name}")).in_flight == ()
    assert claims_in(await replica.claim([a_command(name)])) == []
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.state_reason, job.next_action_time) == ("BLOCKED", "ACCOUNT_ON_HOLD", FAR)
    assert await replica.next_in_line() == []
    (gate,) = await replica.rows("select * from account_gate")
    assert (gate.held, gate.lined, gate.wake_time) == (True, True, None)


async def test_other_accounts_and_organizations_go_out(replica: Replica) -> None:
    names = await replica.posts(2)
    await replica.hold("page-d0")
    claimed = claims_in(await replica.claim([a_command(name) for name in names]))
    assert [each.job.draft_id for each in claimed] == ["d1"]
    await replica.write("update account_gate set organization_id = 'other' where social_account_id = 'page-d1'")
    await replica.hold("page-d1", hold="second")
    held = await replica.rows("select organization_id, social_account_id from account_gate where held")
    assert sorted(map(tuple, held)) == [("acme", "page-d0"), ("acme", "page-d1")]


async def test_what_is_sent_or_may_be_out_is_listed(replica: Replica) -> None:
    names = await replica.posts(3)
    for name in names:
        await replica.write("update post_job set social_account_id = 'page' where draft_id = :draft", draft=name)
    sent, unknown, doubtful = [row.id for row in await replica.rows("select id from post_job order by draft_id")]
    # The gate names the first; the others are in states that hold no gate.
    await replica.write("insert into account_gate values ('acme', 'page', true, :id)", id=sent)
    await replica.write("update post_job set state = 'SENDING', lease_end = :due where id = :id", due=DUE, id=sent)
    await replica.write(
        "update post_job set state = 'UNKNOWN', in_doubt = true, next_action_time = :due where id = :id",
        due=DUE,
        id=unknown,
    )
    await replica.write(
        "update post_job set state = 'WAITING', in_doubt = true, next_action_time = :due where id = :id",
        due=DUE,
        id=doubtful,
    )
    assert (await replica.hold("page")).in_flight == tuple(sorted([sent, unknown, doubtful]))


async def test_a_post_that_a_person_must_find_is_listed(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await replica.write("update post_job set state = 'NEEDS_ATTENTION', in_doubt = true")
    (job,) = await replica.rows("select id from post_job")
    assert (await replica.hold(f"page-{name}")).in_flight == (job.id,)


async def test_a_later_attempt_of_a_post_that_is_out_is_listed(replica: Replica, hasty: Replica) -> None:
    first, second = await a_second_attempt(replica, hasty)
    await replica.settle([a_sent(first)])
    assert await replica.states() == {"PUBLISHED": 1}
    # Proof of the first attempt has ended the job, but the process of the second one may be about to begin.
    assert (await replica.hold("page-d0")).in_flight == (second.job.id,)
    await replica.write("update open_claim set lease_end = cast(:due as timestamptz)", due=DUE)
    assert (await replica.hold("page-d0", hold="later")).in_flight == ()


async def test_posts_that_have_ended_or_wait_are_not_listed(replica: Replica) -> None:
    names = await replica.posts(3, account="page")
    (claimed, *_) = claims_in(await replica.claim([a_command(name, "page") for name in names]))
    await replica.settle([a_sent(claimed)])
    assert await replica.states() == {"PUBLISHED": 1, "READY IN_LINE": 2}
    assert (await replica.hold("page")).in_flight == ()


async def test_a_claim_in_progress_is_waited_for_and_listed(replica: Replica, another: Replica) -> None:
    (name,) = await replica.posts(1)
    async with asyncio.TaskGroup() as group, another.database.transaction() as tx:
        await claim(tx, [a_command(name)], another.lanes, now=DUE, sender="another/1")
        holding = group.create_task(replica.hold(f"page-{name}"))
        await eventually(lambda: _waits_for_a_lock(replica))
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, (await holding).in_flight) == ("SENDING", (job.id,))


async def test_a_claim_that_meets_a_hold_in_progress_claims_nothing(replica: Replica, another: Replica) -> None:
    (name,) = await replica.posts(1)
    async with replica.database.transaction() as tx:
        await replica.put_hold._put(tx, DUE, wanted(f"page-{name}"))
        # The gate is locked, so that the command comes again.
        assert claims_in(await another.claim([a_command(name)])) == []
    assert claims_in(await another.claim([a_command(name)])) == []
    assert await replica.states() == {"BLOCKED ACCOUNT_ON_HOLD": 1}


async def test_a_line_stands_still_and_shows_why(replica: Replica) -> None:
    names = await replica.posts(30, account="page")
    (claimed,) = claims_in(await replica.claim([a_command(name, "page") for name in names]))
    assert (await replica.hold("page")).in_flight == (claimed.job.id,)
    # The settlement of what was out wakes nobody.
    await replica.settle([a_sent(claimed)])
    assert await replica.next_in_line() == []
    while await replica.relabel():
        pass
    assert await replica.states() == {"PUBLISHED": 1, "BLOCKED ACCOUNT_ON_HOLD": 29}
    await replica.wake_stranded()
    assert await replica.next_in_line() == []


async def test_a_line_that_had_its_turn_is_not_claimed(replica: Replica) -> None:
    names = await replica.posts(2, account="page")
    answers = await replica.claim([a_command(name, "page") for name in names])
    await replica.settle([a_sent(each) for each in claims_in(answers)])
    await replica.hold("page")
    # As a process of another release leaves it.
    await replica.write("update account_gate set wake_time = cast(:due as timestamptz)", due=DUE)
    assert await replica.next_in_line() == []
    assert await replica.states() == {"PUBLISHED": 1, "BLOCKED ACCOUNT_ON_HOLD": 1}
    (gate,) = await replica.rows("select wake_time from account_gate")
    assert gate.wake_time is None


async def test_nothing_starts_after_a_hold_was_answered(replica: Replica, another: Replica) -> None:
    names = await replica.posts(200)
    listed: set[str] = set()

    async def hold(name: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        listed.update((await another.hold(f"page-{name}", hold=name)).in_flight)

    for start in range(0, 200, 20):
        round_of = names[start : start + 20]
        async with asyncio.TaskGroup() as group:
            for name in round_of:
                group.create_task(hold(name))
            for mine, half in ((replica, round_of[:10]), (another, round_of[10:])):
                await asyncio.sleep(random.uniform(0, 0.02))
                group.create_task(mine.claim([a_command(name) for name in half]))
        assert not claims_in(await replica.claim([a_command(name) for name in round_of]))

    started = {row.id for row in await replica.rows("select id from post_job where state = 'SENDING'")}
    assert started == listed
    assert await replica.states() == {"SENDING": len(listed), "BLOCKED ACCOUNT_ON_HOLD": 200 - len(listed)}


async def test_a_resend_under_a_hold_does_not_start(replica: Replica, hasty: Replica) -> None:
    (name,) = await replica.posts(1)
    claims_in(await hasty.claim([a_command(name)]))
    await replica.recover()
    (question,) = (await replica.recover()).questions
    assert (await replica.hold(f"page-{name}")).in_flight == (question.job.id,)
    await replica.look_up(question.job)
    assert await replica.states() == {"WAITING RETRY": 1}
    await replica.write("update post_job set next_action_time = cast(:due as timestamptz)", due=DUE)
    commands = list((await replica.recover()).due)
    assert claims_in(await replica.claim(commands)) == []
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.state_reason, job.in_doubt, job.fence) == ("BLOCKED", "ACCOUNT_ON_HOLD", True, 1)


async def test_a_late_command_under_a_hold_does_not_start(replica: Replica) -> None:
    await replica.hold("page-d1", hold="early")
    await replica.posts(2)
    late = a_command("d1")
    assert claims_in(await replica.claim([late])) == []
    assert await replica.states() == {"PENDING": 1, "BLOCKED ACCOUNT_ON_HOLD": 1}


async def test_connecting_an_account_does_not_release_it(replica: Replica) -> None:
    names = await replica.posts(3, account="page", connected=False)
    await replica.claim([a_command(name, "page") for name in names])
    await replica.hold("page")
    await replica.connect("page")
    assert await replica.next_in_line() == []
    while await replica.relabel():
        pass
    assert await replica.states() == {"BLOCKED ACCOUNT_ON_HOLD": 3}


async def test_a_rate_limited_post_is_held_when_it_comes_back(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.hold(f"page-{name}")
    await replica.settle([a_sent(claimed, RateLimited(message="", retry_after=timedelta(0)))])
    assert claims_in(await replica.claim([a_command(name)])) == []
    assert await replica.states() == {"BLOCKED ACCOUNT_ON_HOLD": 1}


async def test_a_held_post_is_missed_at_its_latest_time(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.hold()
        await rig.save_draft("d1")
        due = rig.clock.now()
        slot = await rig.schedule("d1", due)
        await rig.command("d1", slot, due, not_after=due + timedelta(seconds=2))
        job = await rig.in_state("BLOCKED", "d1")
        assert job.state_reason == "ACCOUNT_ON_HOLD"
        await rig.in_state("MISSED", "d1")
        assert rig.sandbox.effects() == []


async def test_puts_of_one_revision_are_one_put(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    for _ in range(2):
        holding = await replica.hold(f"page-{name}", revision=3)
        assert (holding.hold.revision, holding.in_flight) == (3, (claimed.job.id,))
    assert (await replica.rows("select epoch from hold_epoch"))[0].epoch == 1


async def test_an_older_put_is_refused_and_changes_nothing(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await replica.release(revision=4)
    with pytest.raises(Refused) as refusal:
        await replica.hold(f"page-{name}", revision=3)
    assert refusal.value.reason == "HOLD_SUPERSEDED"
    assert len(claims_in(await replica.claim([a_command(name)]))) == 1


async def test_a_hold_on_an_unknown_account_counts_once_it_is_connected(replica: Replica) -> None:
    await replica.hold("page")
    await replica.connect("page")
    await replica.posts(1, account="page", connected=False)
    assert claims_in(await replica.claim([a_command("d0", "page")])) == []


async def test_concurrent_holds_of_one_account_both_count(replica: Replica, another: Replica) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task((replica, another)[number % 2].hold("page", hold=f"hold-{number}"))
    for number in range(5):
        await replica.release(f"hold-{number}")
    (gate,) = await replica.rows("select held from account_gate")
    assert gate.held
    assert (await replica.rows("select epoch from hold_epoch"))[0].epoch == 6


async def test_a_hold_is_one_log_line(replica: Replica, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await replica.hold("page", reason="wrong price", holder="ann")
    await replica.release()
    lines = [each for each in caplog.records if "hold" in each.getMessage()]
    assert [line.getMessage() for line in lines] == ["hold put", "hold released"]
    for line in lines:
        said = {key: line.__dict__[key] for key in ("scope", "scope_id", "hold_id", "reason", "holder")}
        assert said == {
            "scope": "ACCOUNT",
            "scope_id": "page",
            "hold_id": "hold",
            "reason": "wrong price",
            "holder": "ann",
        }


async def _waits_for_a_lock(replica: Replica) -> bool:
    waiting = await replica.rows(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )
    return bool(waiting)


def wanted(account: str) -> WantedHold:
    return WantedHold(
        organization_id="acme", id="hold", scope=Scope.ACCOUNT, scope_id=account, revision=0, reason="", holder=""
    )
