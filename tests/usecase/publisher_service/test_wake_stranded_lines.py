"""Lines that nothing would wake are found and woken."""

import pytest

from publisher_service.application.wake_stranded_lines import WakeStrandedLines
from publisher_service.domain.hold import Scope
from servicekit.pg.clock import DatabaseClock
from tests.usecase.publisher_service.replica import Replica, a_command, a_sent, claims_in
from tests.usecase.publisher_service.rig import Start


@pytest.mark.parametrize(
    "left_behind",
    [
        "update account_gate set wake_time = null",
        "update account_gate set wake_time = null, lined = false",
        "update account_gate set open_job_id = (select id from post_job where state = 'PUBLISHED'), wake_time = null",
    ],
)
async def test_a_line_that_nothing_would_wake_is_woken(replica: Replica, left_behind: str) -> None:
    names = await replica.posts(3, account="page")
    answers = await replica.claim([a_command(name, "page") for name in names])
    await replica.settle([a_sent(each) for each in claims_in(answers)])
    await replica.write(left_behind)
    assert not await replica.wake_stranded()
    for _ in range(2):
        await replica.settle([a_sent(each) for each in await replica.next_in_line()])
    assert await replica.states() == {"PUBLISHED": 3}


@pytest.mark.parametrize("state", ["SENDING", "UPLOADING"], ids=["is out", "is in a state of a newer release"])
async def test_a_line_behind_an_open_post_is_left_alone(replica: Replica, state: str) -> None:
    names = await replica.posts(3, account="page")
    await replica.claim([a_command(name, "page") for name in names])
    for constraint in ("post_job_state_check", "post_job_moves"):
        await replica.write(f"alter table post_job drop constraint {constraint}")
    await replica.write("update post_job set state = :state where state = 'SENDING'", state=state)
    await replica.write("update account_gate set lined = false")
    assert not await replica.wake_stranded()
    (gate,) = await replica.rows("select * from account_gate")
    assert (gate.lined, gate.wake_time, gate.open_job_id is None) == (True, None, False)
    assert await replica.next_in_line() == []


@pytest.mark.parametrize(("scope", "scope_id"), [(Scope.ORGANIZATION, ""), (Scope.PROVIDER, "sandbox")])
async def test_a_frozen_line_is_woken_only_when_no_hold_covers_it(
    replica: Replica, scope: Scope, scope_id: str
) -> None:
    """A person who changes rows by hand may end a hold without a release."""
    names = await replica.posts(2, account="page")
    await replica.hold(scope_id, scope=scope)
    await replica.claim([a_command(name, "page") for name in names])
    await replica.wake_stranded()
    assert (await replica.rows("select wake_time from account_gate"))[0].wake_time is None
    await replica.write("update hold set in_force = false")
    await replica.wake_stranded()
    (gate,) = await replica.rows("select wake_time, frozen, relabel from account_gate")
    assert (gate.wake_time is None, gate.frozen, gate.relabel) == (False, "", True)
    for _ in names:
        await replica.settle([a_sent(each) for each in await replica.next_in_line()])
    assert await replica.states() == {"PUBLISHED": 2}


async def test_lines_are_searched_page_by_page(replica: Replica) -> None:
    wake_stranded = WakeStrandedLines(database=replica.database, clock=DatabaseClock(), page=2)
    names = await replica.posts(5)
    await replica.claim([a_command(name) for name in names])
    await replica.write("update post_job set state = 'READY', state_reason = 'IN_LINE', next_action_time = not_after")
    await replica.write("update account_gate set open_job_id = null")
    assert [await wake_stranded() for _ in range(4)] == [True, True, False, True]
    assert len(await replica.rows("select 1 from account_gate where lined and wake_time is not null")) == 5


async def test_a_process_wakes_lines_that_nothing_would_wake_at_its_start(start: Start, replica: Replica) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "slow", "seconds": 0.9, "count": 1})
        await rig.post_many(3)
        await rig.all_in("READY", 2, reason="IN_LINE")
    # The first process, which looks at its start, too, is gone: nothing wakes the line now.
    assert (await replica.states())["READY IN_LINE"] > 0
    await replica.write("update account_gate set lined = false, wake_time = null")
    async with start() as rig:
        await rig.all_in("PUBLISHED", 3)
