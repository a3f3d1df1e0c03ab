"""Lines of connected and disconnected accounts show why they wait, a page at a time."""

from datetime import timedelta

from sqlalchemy import text

from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import Replica, a_command
from tests.usecase.publisher_service.rig import Start

DISCONNECT = text("update account_gate set connected = false, relabel = true, wake_time = null")


async def test_a_line_goes_on_while_a_page_of_it_is_relabeled(replica: Replica, another: Replica) -> None:
    names = await replica.posts(250, account="page", connected=False)
    await replica.claim([a_command(name, "page") for name in names])
    await replica.connect("page")
    async with another.database.transaction() as tx:
        assert await another.relabel.page(tx)
        assert len(await replica.next_in_line()) == 1
    while await replica.relabel():
        pass
    assert await replica.states() == {"SENDING": 1, "READY IN_LINE": 249}
    assert await replica.rows("select 1 from account_gate where relabel") == []


async def test_a_post_without_its_times_does_not_stop_the_relabeling(replica: Replica) -> None:
    names = await replica.posts(3, account="page", connected=False)
    await replica.claim([a_command(name, "page") for name in names])
    await replica.write("update post_job set not_after = null where draft_id = 'd1'")
    await replica.connect("page")
    while await replica.relabel():
        pass
    assert await replica.states() == {"READY IN_LINE": 2, "BLOCKED ACCOUNT_NOT_CONNECTED": 1}
    assert await replica.rows("select 1 from account_gate where relabel") == []


async def test_a_disconnection_during_a_page_is_relabeled_afterwards(replica: Replica, another: Replica) -> None:
    names = await replica.posts(20, account="page", connected=False)
    await replica.claim([a_command(name, "page") for name in names])
    await replica.connect("page")
    async with another.database.transaction() as tx:
        assert await another.relabel.page(tx)
        async with replica.database.transaction() as other:
            await other.connection.execute(DISCONNECT)
        assert not await replica.relabel()
    while await replica.relabel():
        pass
    assert await replica.states() == {"BLOCKED ACCOUNT_NOT_CONNECTED": 20}
    assert await replica.rows("select 1 from account_gate where relabel") == []


async def test_connecting_an_account_with_many_blocked_posts_is_immediate(start: Start) -> None:
    # A request that is given up on a busy machine would be another attempt.
    async with start(request_timeout=timedelta(seconds=20)) as rig:
        await rig.post_many(500)
        await rig.all_in("BLOCKED", 500, reason="ACCOUNT_NOT_CONNECTED")
        # The first answers are slow, so that the line is still long when it is relabeled.
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.4, "count": 4})
        await rig.connect()

        async def shown() -> bool:
            rows = await rig.rows("select 1 from post_job where state_reason = 'ACCOUNT_NOT_CONNECTED'")
            return not rows

        await eventually(shown, within=60)
        await rig.all_in("PUBLISHED", 500)
        assert len(await rig.rows("select 1 from attempt")) == 500


async def test_a_line_of_a_disconnected_account_shows_why_it_waits(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 401, "count": 1})
        await rig.post_many(30)
        await rig.all_in("BLOCKED", 30, reason="ACCOUNT_NOT_CONNECTED")
        await rig.connect()
        await rig.all_in("PUBLISHED", 30)
