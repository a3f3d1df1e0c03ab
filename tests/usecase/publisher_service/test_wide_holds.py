"""Holds of organizations, providers, brands and campaigns: what they cover stays, all else goes out."""

import asyncio

import pytest

from publisher_service.adapters.postgres.wide_holds import share_wide_holds
from publisher_service.domain.hold import Scope
from tests.usecase.publisher_service.replica import DUE, Replica, a_command, a_draft, a_sent, claims_in
from tests.usecase.publisher_service.wide_holds import WIDE, all_out, branded, freed

OUTSIDE = (Scope.BRAND, Scope.CAMPAIGN)


@pytest.mark.parametrize("scope", WIDE)
async def test_nothing_that_a_hold_covers_is_claimed(replica: Replica, another: Replica, scope: Scope) -> None:
    names = await branded(replica, 3)
    await another.hold(WIDE[scope], scope=scope)
    assert claims_in(await replica.claim([a_command(name) for name in names])) == []
    assert await replica.states() == {f"BLOCKED {scope}_ON_HOLD": 3}
    await another.release()
    await freed(another)
    assert await replica.states() == {"READY IN_LINE": 3}
    await all_out(replica)
    assert await replica.states() == {"PUBLISHED": 3}


@pytest.mark.parametrize("scope", WIDE)
async def test_a_hold_of_something_else_holds_nothing(replica: Replica, scope: Scope) -> None:
    names = await branded(replica, 1)
    organization, scope_id = ("other", "") if scope is Scope.ORGANIZATION else ("acme", "other")
    # No call puts a hold of a provider that is not there.
    await replica.write(
        "insert into hold select :organization, 'h', :scope, :scope_id, 1, 'why', '', true, :now, :now",
        organization=organization,
        scope=scope,
        scope_id=scope_id,
        now=DUE,
    )
    assert len(claims_in(await replica.claim([a_command(name) for name in names]))) == 1


@pytest.mark.parametrize("scope", OUTSIDE)
async def test_other_posts_of_the_account_pass_a_held_brand(replica: Replica, scope: Scope) -> None:
    names = await replica.posts(3, account="page")
    await replica.save(a_draft(names[0], "page", version=2, brand="bakery", campaign="spring"))
    await replica.hold(WIDE[scope], scope=scope)
    (first,) = claims_in(await replica.claim([a_command(name, "page") for name in names]))
    await replica.settle([a_sent(first)])
    await all_out(replica)
    assert await replica.states() == {"PUBLISHED": 2, f"BLOCKED {scope}_ON_HOLD": 1}


@pytest.mark.parametrize("scope", WIDE)
async def test_what_was_claimed_before_is_listed_and_not_sent(replica: Replica, another: Replica, scope: Scope) -> None:
    names = await branded(replica, 2)
    claimed = claims_in(await replica.claim([a_command(name) for name in names]))
    holding = await another.hold(WIDE[scope], scope=scope)
    assert (sorted(holding.in_flight), holding.in_flight_count) == (sorted(each.job.id for each in claimed), 2)
    sent = [await replica.send_post(each, claim_started=replica.system.monotonic() - 1) for each in claimed]
    assert {getattr(each.outcome, "reason", "") for each in sent} == {f"{scope}_ON_HOLD"}
    await replica.settle(sent)
    while await replica.next_in_line() or await replica.relabel():
        pass
    assert await replica.states() == {f"BLOCKED {scope}_ON_HOLD": 2}
    assert {row.attempts for row in await replica.rows("select attempts from post_job")} == {0}
    await another.release()
    await freed(another)
    await all_out(replica)
    assert await replica.states() == {"PUBLISHED": 2}


async def test_a_draft_that_changes_its_brand_leaves_the_hold(replica: Replica) -> None:
    (name,) = await branded(replica, 1)
    await replica.hold("bakery", scope=Scope.BRAND)
    await replica.claim([a_command(name)])
    await replica.save(a_draft(name, f"page-{name}", version=3, brand="florist"))
    assert await replica.states() == {"READY": 1}
    (job,) = await replica.rows("select brand_id, campaign_id from post_job")
    assert (job.brand_id, job.campaign_id) == ("florist", "")
    assert len(claims_in(await replica.claim([a_command(name)]))) == 1


async def test_a_frozen_line_is_looked_at_once(replica: Replica) -> None:
    names = await replica.posts(5, account="page")
    (first,) = claims_in(await replica.claim([a_command(name, "page") for name in names]))
    await replica.hold("", scope=Scope.ORGANIZATION)
    await replica.settle([a_sent(first)])
    assert await replica.next_in_line() == []
    (gate,) = await replica.rows("select wake_time, frozen, relabel from account_gate")
    assert (gate.wake_time, gate.frozen, gate.relabel) == (None, "ORGANIZATION_ON_HOLD", True)
    while await replica.relabel():
        pass
    assert await replica.states() == {"PUBLISHED": 1, "BLOCKED ORGANIZATION_ON_HOLD": 4}
    assert not await replica.wake_stranded()
    (gate,) = await replica.rows("select wake_time from account_gate")
    assert gate.wake_time is None


async def test_a_put_waits_for_the_claims_that_cannot_see_it(replica: Replica, another: Replica) -> None:
    """A claim that began before is committed when the hold is stored, or has not begun to look."""
    (name,) = await branded(replica, 1)
    async with replica.database.transaction() as claiming:
        await share_wide_holds(claiming)
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            putting = group.create_task(another.hold("bakery", scope=Scope.BRAND))
            while not await _waits_for_a_lock(replica):
                assert not putting.done()
            await claiming.commit()
    assert claims_in(await replica.claim([a_command(name)])) == []


async def test_a_claim_that_stands_still_does_not_stop_the_others(replica: Replica, another: Replica) -> None:
    """The put gives up after a second, and new claims need not wait for it."""
    names = await branded(replica, 1)
    async with replica.database.transaction() as claiming:
        await share_wide_holds(claiming)
        with pytest.raises(Exception, match="lock timeout"):
            await another.hold("bakery", scope=Scope.BRAND)
        assert len(claims_in(await another.claim([a_command(name) for name in names]))) == 1


async def _waits_for_a_lock(replica: Replica) -> bool:
    waiting = await replica.rows(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )
    return bool(waiting)
