"""Posts that wide holds have kept back are freed after the release: all, once, and no faster than the rate."""

from datetime import timedelta

import pytest

from publisher_service.domain.hold import Scope
from publisher_service.domain.outcome import NotBegun
from publisher_service.domain.post_job import Reason
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, a_sent, claims_in
from tests.usecase.publisher_service.wide_holds import WIDE, all_out, branded, freed

UNSENT = NotBegun(reason=Reason.BRAND_ON_HOLD, message="")


async def test_a_post_given_back_after_the_release_is_freed(replica: Replica) -> None:
    """Its settlement is the last to know of the hold: the release has freed everything by then."""
    names = await branded(replica, 1)
    (claimed,) = claims_in(await replica.claim([a_command(name) for name in names]))
    await replica.hold("bakery", scope=Scope.BRAND)
    await replica.release()
    await freed(replica)
    await replica.settle([a_sent(claimed, UNSENT)])
    assert await replica.states() == {"BLOCKED BRAND_ON_HOLD": 1}
    await freed(replica)
    await all_out(replica)
    assert await replica.states() == {"PUBLISHED": 1}


async def test_a_freed_post_of_a_disabled_account_shows_that(replica: Replica) -> None:
    names = await branded(replica, 1)
    await replica.hold("bakery", scope=Scope.BRAND)
    await replica.claim([a_command(name) for name in names])
    await replica.write("update account_gate set enabled = false")
    await replica.release()
    await freed(replica)
    assert await replica.states() == {"BLOCKED ACCOUNT_DISABLED": 1}


async def test_a_brand_that_changed_during_a_send_does_not_strand_the_post(replica: Replica) -> None:
    names = await branded(replica, 1)
    (claimed,) = claims_in(await replica.claim([a_command(name) for name in names]))
    await replica.hold("bakery", scope=Scope.BRAND)
    await replica.save(a_draft(names[0], f"page-{names[0]}", version=3, brand="florist"))
    await replica.settle([a_sent(claimed, UNSENT)])
    await freed(replica)
    await all_out(replica)
    assert await replica.states() == {"PUBLISHED": 1}


@pytest.mark.parametrize("scope", WIDE)
async def test_a_hold_put_again_meanwhile_ends_the_release(replica: Replica, scope: Scope) -> None:
    names = await branded(replica, 2)
    await replica.hold(WIDE[scope], scope=scope)
    await replica.claim([a_command(name) for name in names])
    await replica.release()
    await replica.hold(WIDE[scope], scope=scope)
    assert await replica.free()
    assert not await replica.free()
    assert await replica.states() == {f"BLOCKED {scope}_ON_HOLD": 2}


@pytest.mark.parametrize("scope", WIDE)
async def test_a_release_is_paced(database_url: str, scope: Scope) -> None:
    """Checks that a page holds the next one back for as long as its posts take at 500 a second, and spreads them."""
    clock = FrozenDatabaseClock()
    replica = Replica(database_url, clock=clock)
    names = await branded(replica, 250)
    await replica.hold(WIDE[scope], scope=scope)
    await replica.claim([a_command(name) for name in names])
    await replica.release()
    lines = 0
    while lines < 250:
        while await replica.free():
            pass
        (turns,) = await replica.rows(
            "select count(*) as lines, min(wake_time) as first, max(wake_time) as last from account_gate"
            " where wake_time >= :now",
            now=clock.moment,
        )
        (freed_now, lines) = (turns.lines, lines + turns.lines)
        assert 0 < freed_now <= 200
        assert (turns.first, turns.last) == (clock.moment, clock.moment + (freed_now - 1) * timedelta(milliseconds=2))
        (release,) = await replica.rows("select next_time from hold_release")
        assert release.next_time == clock.moment + freed_now * timedelta(milliseconds=2)
        clock.moment = release.next_time
    assert lines == 250
    await replica.database.dispose()


async def test_a_line_waits_until_no_hold_covers_it(replica: Replica) -> None:
    names = await branded(replica, 2, account="page")
    for scope, scope_id in WIDE.items():
        await replica.hold(scope_id, scope=scope, hold=scope)
    await replica.hold("page", hold="ACCOUNT")
    await replica.claim([a_command(name, "page") for name in names])
    for scope, then in (
        (Scope.ORGANIZATION, "PROVIDER"),
        (Scope.PROVIDER, "ACCOUNT"),
        (Scope.ACCOUNT, "BRAND"),
        (Scope.BRAND, "CAMPAIGN"),
    ):
        await replica.release(scope)
        await freed(replica)
        for _ in names:
            assert await replica.next_in_line() == []
        assert await replica.states() == {f"BLOCKED {then}_ON_HOLD": 2}
    await replica.release(Scope.CAMPAIGN)
    await freed(replica)
    await all_out(replica)
    assert await replica.states() == {"PUBLISHED": 2}
