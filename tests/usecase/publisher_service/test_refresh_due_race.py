"""Two processes refresh many accounts with rotating tokens, and die at each step: none is lost, none is asked twice.

The sandbox's ledger says what was presented; the journal has to explain what was presented more than once.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from publisher_service.application.refresh_due import Taken
from servicekit import failpoints
from tests.usecase.publisher_service.renewing import HOUR, Renewing

ACCOUNTS = [f"a{number:02d}" for number in range(24)]
STEPS = ("taken", "answered", "recorded")


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.install("", "test")


async def connect_all(office: Renewing, *, grace: float = 0.0) -> None:
    for account in ACCOUNTS:
        await office.connect(account, await office.issue(account, rotating=True, grace=grace))


async def run_until_death(process: Renewing) -> None:
    """Refreshes as the engine does; a failpoint ends what is done about an account, as the death of a process does."""
    while True:
        try:
            taken = await process.take(room=5)
        except failpoints.FailpointHit:
            continue
        if not taken:
            return
        async with asyncio.TaskGroup() as group:
            for each in taken:
                group.create_task(one(process, each))


async def one(process: Renewing, taken: Taken) -> None:
    with suppress(failpoints.FailpointHit):
        await process.refresh(taken)


async def both(office: Renewing, branch: Renewing) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(run_until_death(office))
        group.create_task(run_until_death(branch))


async def leases_end(office: Renewing) -> None:
    await office.replica.write("update credential set next_time = now(), lease_end = now() where lease_end > now()")


async def check(office: Renewing) -> None:
    """Every account works, and a token that was presented twice was in flight when its process died."""
    for account in ACCOUNTS:
        row = await office.row(account)
        assert (row.account_state, row.is_refused) == ("CONNECTED", False), account
        await office.providers["sandbox"].verify("acme", f"ext-{account}", await office.credentials(account), {})
        shown = Counter(name for name, _ in office.presented(account))
        lost = Counter(generation for generation, state in await office.journal(account) if state == "INTENT")
        for name, times in shown.items():
            generation = int(name.partition("-")[2]) + 1
            assert times <= 1 + lost[generation], f"{account}: {name} was presented {times} times"


async def test_without_a_death_each_account_is_asked_for_once(office: Renewing, branch: Renewing) -> None:
    await connect_all(office)
    await office.make_due(*ACCOUNTS)
    await both(office, branch)
    await check(office)
    assert all(len(office.presented(account)) == 1 for account in ACCOUNTS)
    rows = await office.replica.rows("select distinct process from credential_refresh")
    assert {row.process for row in rows} == {"one", "two"}


@pytest.mark.parametrize("step", STEPS)
async def test_a_death_at_any_step_loses_no_account(office: Renewing, branch: Renewing, step: str) -> None:
    await connect_all(office, grace=30)
    for _ in range(3):
        await office.make_due(*ACCOUNTS)
        failpoints.install(f"publisher.refresh.{step}=raise:0.5", "test")
        await both(office, branch)
        failpoints.install("", "test")
        await leases_end(office)
        await both(office, branch)
        await check(office)
    rows = await office.replica.rows("select generation from credential")
    assert {row.generation for row in rows} == {4}


async def test_without_a_grace_a_lost_answer_is_announced_and_posts_go_on(office: Renewing, branch: Renewing) -> None:
    await connect_all(office)
    await office.make_due(*ACCOUNTS)
    failpoints.install("publisher.refresh.answered=raise:0.5", "test")
    await both(office, branch)
    failpoints.install("", "test")
    await leases_end(office)
    await both(office, branch)
    refused = [row for row in [await office.row(account) for account in ACCOUNTS] if row.is_refused]
    assert 0 < len(refused) < len(ACCOUNTS)
    for row in refused:
        assert (row.account_state, row.connected, row.is_warned) == ("CONNECTED", True, True)
        assert "was lost" in row.error
        assert await office.journal(row.social_account_id) == [(1, "INTENT"), (1, "REFUSED")]
    assert len(await office.notices()) == len(refused)
    await office.move(refused[0].social_account_id, expire_time=HOUR, next_time=HOUR)
    await office.run()
    assert (await office.row(refused[0].social_account_id)).state_reason == "CREDENTIALS_EXPIRED"


async def test_one_refresh_at_a_time_is_in_flight(office: Renewing, branch: Renewing) -> None:
    await connect_all(office)
    await office.make_due(*ACCOUNTS)
    await office.sandbox.faults({"fault": "slow", "operation": "token", "seconds": 0.2})
    await both(office, branch)
    for account in ACCOUNTS:
        assert [outcome for _, outcome in office.presented(account)] == ["answered"]
