"""ReleaseHold: the line of an account goes on at once, unless another hold covers it."""

import pytest

from servicekit.faults import NotFound, Refused
from tests.usecase.publisher_service.replica import Replica, a_command, a_sent, claims_in
from tests.usecase.publisher_service.rig import Start


async def test_a_released_line_goes_on_in_order_before_it_is_relabeled(replica: Replica) -> None:
    names = await replica.posts(3, account="page")
    await replica.hold("page")
    await replica.claim([a_command(name, "page") for name in names])
    assert (await replica.release()).in_force is False
    for _ in names:
        (claimed,) = await replica.next_in_line()
        await replica.settle([a_sent(claimed)])
    assert await replica.states() == {"PUBLISHED": 3}


async def test_a_release_writes_no_row_of_a_post(replica: Replica) -> None:
    names = await replica.posts(50, account="page")
    await replica.hold("page")
    await replica.claim([a_command(name, "page") for name in names])
    before = await replica.rows("select id, xmin::text from post_job order by id")
    await replica.release()
    assert await replica.rows("select id, xmin::text from post_job order by id") == before
    while await replica.relabel():
        pass
    assert await replica.states() == {"READY IN_LINE": 50}


async def test_a_line_waits_for_the_release_of_every_hold(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await replica.hold(f"page-{name}", hold="first")
    await replica.hold(f"page-{name}", hold="second")
    await replica.claim([a_command(name)])
    await replica.release("first")
    assert await replica.next_in_line() == []
    await replica.release("second")
    assert len(await replica.next_in_line()) == 1


async def test_a_release_waits_for_the_post_that_is_out(replica: Replica) -> None:
    names = await replica.posts(2, account="page")
    (claimed,) = claims_in(await replica.claim([a_command(name, "page") for name in names]))
    await replica.hold("page")
    await replica.release()
    assert await replica.next_in_line() == []
    await replica.settle([a_sent(claimed)])
    assert len(await replica.next_in_line()) == 1


async def test_a_release_of_a_disconnected_account_shows_the_disconnection(replica: Replica) -> None:
    names = await replica.posts(2, account="page", connected=False)
    await replica.hold("page")
    await replica.claim([a_command(name, "page") for name in names])
    await replica.release()
    assert await replica.next_in_line() == []
    while await replica.relabel():
        pass
    assert await replica.states() == {"BLOCKED ACCOUNT_NOT_CONNECTED": 2}


async def test_a_hold_that_is_put_again_holds_again(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    first = await replica.hold(f"page-{name}", revision=1)
    await replica.release(revision=2)
    again = await replica.hold(f"page-{name}", revision=3)
    assert (again.hold.create_time, again.hold.revision) == (first.hold.create_time, 3)
    assert claims_in(await replica.claim([a_command(name)])) == []


async def test_a_release_keeps_an_older_put_from_counting(replica: Replica) -> None:
    released = await replica.release(revision=2)
    assert (released.in_force, released.revision, released.scope) == (False, 2, "")
    assert await replica.release(revision=2) == released
    with pytest.raises(Refused) as refusal:
        await replica.hold("page", revision=1)
    assert refusal.value.reason == "HOLD_SUPERSEDED"


async def test_an_older_release_is_refused(replica: Replica) -> None:
    await replica.hold("page", revision=3)
    with pytest.raises(Refused) as refusal:
        await replica.release(revision=2)
    assert refusal.value.reason == "HOLD_SUPERSEDED"
    (gate,) = await replica.rows("select held from account_gate")
    assert gate.held


async def test_a_release_of_no_hold_leaves_nothing_behind(replica: Replica) -> None:
    with pytest.raises(NotFound):
        await replica.release()
    assert await replica.rows("select 1 from hold") == []


async def test_a_released_account_publishes_what_waited(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.hold()
        await rig.post_many(30)
        await rig.all_in("BLOCKED", 30, reason="ACCOUNT_ON_HOLD")
        assert rig.sandbox.effects() == []
        await rig.release()
        await rig.all_in("PUBLISHED", 30)
        assert len(rig.sandbox.effects()) == 30
