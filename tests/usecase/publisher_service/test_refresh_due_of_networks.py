"""Tokens of 60 days of Facebook and LinkedIn, on a clock that moves: refreshed ahead, announced, or over."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.faults import Fault, Rule
from servicekit.faults import Refused
from tests.usecase.publisher_service.networked import Networked, networked

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


@pytest.fixture
async def office(database_url: str, tmp_path: Path) -> AsyncIterator[Networked]:
    async with networked(database_url, tmp_path) as process:
        process.facebook.pages["user-1"] = ["page-1", "page-2"]
        yield process


async def test_a_page_is_refreshed_seven_days_ahead_again_and_again(office: Networked) -> None:
    account = await office.connect("facebook", "page", external="page-1")
    begun, first = office.now, await office.credentials("page")
    assert account.external_account_id == "page-1"
    row = await office.row("page")
    assert (row.expire_time, row.is_refreshable) == (begun + 60 * DAY, True)
    assert 7 * DAY <= row.expire_time - row.refresh_time < 7.8 * DAY
    office.pass_time(52 * DAY)
    assert await office.taken() == 0
    for generation in (2, 3, 4):
        office.pass_time(row.refresh_time - office.now)

        async def refreshed(wanted: int = generation) -> None:
            assert (await office.row("page")).generation == wanted

        await office.refreshes(refreshed)
        row = await office.row("page")
        assert (row.account_state, row.expire_time) == ("CONNECTED", office.now + 60 * DAY)
    assert await office.journal("page") == [(1, "DONE"), (2, "DONE"), (3, "DONE")]
    assert office.now - begun > 150 * DAY
    last = await office.credentials("page")
    assert not set(first.secrets) & set(last.secrets)
    await office.providers["facebook"].verify("acme", "page-1", last, {})
    assert await office.notices() == []


async def test_a_member_without_a_refresh_token_is_announced_seven_days_ahead(office: Networked) -> None:
    await office.connect("linkedin", "ann")
    end = office.now + 60 * DAY
    office.pass_time(53 * DAY - timedelta(seconds=1))
    assert await office.taken() == 0
    office.pass_time(timedelta(seconds=1))

    async def announced() -> None:
        assert await office.notices() == [("ann", end)]

    await office.refreshes(announced)
    assert (await office.row("ann")).account_state == "CONNECTED"
    office.pass_time(7 * DAY)

    async def over() -> None:
        row = await office.row("ann")
        assert (row.account_state, row.state_reason) == ("DISCONNECTED", "CREDENTIALS_EXPIRED")

    await office.refreshes(over)
    assert len(await office.notices()) == 1
    assert await office.journal("ann") == []
    await office.connect("linkedin", "ann")
    assert (await office.row("ann")).account_state == "CONNECTED"


async def test_the_year_of_a_refresh_token_is_announced_before_its_end(office: Networked) -> None:
    office.linkedin.is_partner = True
    await office.connect("linkedin", "ann")
    end = office.now + 365 * DAY
    while (row := await office.row("ann")).refresh_time < end - 8 * DAY:
        # LinkedIn counts in whole seconds.
        assert timedelta(0) <= end - row.refresh_expire_time < MINUTE
        office.pass_time(row.refresh_time - office.now)

        async def refreshed(wanted: int = row.generation + 1) -> None:
            assert (await office.row("ann")).generation == wanted

        await office.refreshes(refreshed)
    assert await office.notices() == []
    office.pass_time(end - 7 * DAY - office.now)

    async def announced() -> None:
        assert [account for account, said in await office.notices() if end - said < MINUTE] == ["ann"]

    await office.refreshes(announced)


async def test_a_lost_answer_is_asked_for_again_until_the_token_is_over(office: Networked) -> None:
    await office.connect("facebook", "page", external="page-1")
    office.facebook.faults.add(Rule(fault=Fault.RESET, operation="exchange", effect=True, count=0))
    office.pass_time(53 * DAY)

    async def failed() -> None:
        assert await office.journal("page") == [(1, "FAILED")]

    await office.refreshes(failed)
    assert (await office.row("page")).account_state == "CONNECTED"
    office.facebook.faults.clear()
    office.pass_time(7 * DAY)

    async def refused() -> None:
        row = await office.row("page")
        assert (row.account_state, row.state_reason) == ("DISCONNECTED", "CREDENTIALS_EXPIRED")

    await office.refreshes(refused)
    assert await office.journal("page") == [(1, "FAILED"), (1, "REFUSED")]


async def test_a_permission_that_is_left_out_connects_nothing(office: Networked) -> None:
    office.facebook.declined = {"pages_manage_posts"}
    with pytest.raises(Refused) as refused:
        await office.connect("facebook", "page", external="page-1")
    assert refused.value.reason == "SCOPES_MISSING"
    assert refused.value.metadata["scopes"] == "pages_manage_posts"
    assert await office.replica.rows("select id from social_account") == []
