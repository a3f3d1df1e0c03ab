"""Parked posts come back as many as their limit lets go, for a price that does not grow with their number."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.parking import (
    ParkedLine,
    behind_cap,
    behind_head,
    due_parked_lines,
    first_parked,
    is_any_parked,
    lock_parked_gate,
    use_of,
    wake_at,
)
from publisher_service.domain.limits import SPACED_OUTREACH
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining
from tests.usecase.publisher_service.outreach import NOON, SPACING, Outreach
from tests.usecase.publisher_service.replica import FAR

ROWS = 20_000
CAPPED = ParkedLine(organization_id="acme", account_id="page", parked_on="action:EMAIL")


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    """An account with 20,000 posts that are parked on its cap, beside 20,000 lines of other accounts."""
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        for statement in FILL:
            known = {"rows": ROWS, "now": NOON, "far": FAR}
            names = {name: value for name, value in known.items() if f":{name}" in statement}
            await tx.connection.execute(text(statement), names)
    if request.param == "analyzed":
        async with database.statement() as connection:
            await connection.execute(text("vacuum analyze"))
    yield database
    await database.dispose()
    await databases.drop(url)


FILL = (
    """
    insert into account_gate (organization_id, social_account_id, provider, connected)
    select 'acme', 'b' || n, 'sandbox', true from generate_series(1, :rows) n
    """,
    """
    insert into account_gate (organization_id, social_account_id, provider, connected)
    values ('acme', 'page', 'sandbox', true)
    """,
    """
    insert into post_job (organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason,
        version, run, slot_id, slot_revision, schedule_time, not_after, next_action_time, max_attempts, attempts, fence,
        content_revision, withdrawn_below, external_id, external_url, evidence_kind, error_reason, error_message,
        target_month, traceparent, create_time, update_time, parked_on, expected_time)
    select 'acme', 'b' || n, 'b' || n, 'page', 'email', '', 'WAITING', 'DAILY_CAP', 1, 1, 's', 1,
        cast(:now as timestamptz), :far, :far, 5, 0, 1, 1, 0, '', '', '', '', '', '', '', :now, :now, 'action:EMAIL',
        :now
    from generate_series(1, :rows) n
    """,
    """
    insert into parked_line
    select 'acme', 'b' || n, 'action:EMAIL', cast(:far as timestamptz) from generate_series(1, :rows) n
    """,
    "insert into parked_line values ('acme', 'page', 'action:EMAIL', :now)",
    """
    insert into account_action (organization_id, social_account_id, action, cap)
    select 'acme', 'b' || n, 'EMAIL', 5 from generate_series(1, :rows) n
    """,
)


async def test_a_look_reads_no_more_posts_than_come_back(full: Database) -> None:
    async with full.engine.connect() as plain:
        explaining = Explaining(plain, growing={"post_job", "account_gate", "parked_line", "account_action"})
        connection: Any = explaining
        assert await due_parked_lines(connection, now=NOON, limit=50) == [CAPPED]
        await lock_parked_gate(connection, CAPPED)
        await use_of(connection, CAPPED, "EMAIL", now=NOON)  # type: ignore[arg-type]
        await behind_cap(connection, CAPPED, "EMAIL", spacing=SPACED_OUTREACH, limit=20)  # type: ignore[arg-type]
        assert len(await first_parked(connection, CAPPED, limit=20)) == 20
        assert await is_any_parked(connection, CAPPED)
        assert await behind_head(connection, CAPPED.account, limit=20) == []
        await wake_at(connection, CAPPED, FAR)
        explaining.check(20)


@pytest.mark.parametrize("small", ["aaa", "zzz"])
async def test_limits_that_end_together_keep_no_other_organization_waiting(outreach: Outreach, small: str) -> None:
    line = "insert into parked_line values (:organization, 'b' || :number, 'spacing:OUTREACH', :now)"
    for number in range(60):
        now = outreach.now - timedelta(seconds=100 - number)
        await outreach.replica.write(line, organization="big", number=str(number), now=now)
    await outreach.replica.write(line, organization=small, number="0", now=outreach.now)
    await outreach.replica.write(line, organization="later", number="0", now=FAR)
    async with outreach.replica.database.statement() as connection:
        found = await due_parked_lines(connection, now=outreach.now, limit=10)
    assert [each.account_id for each in found if each.organization_id == "big"] == [f"b{number}" for number in range(5)]
    assert [each.organization_id for each in found if each.organization_id != "big"] == [small]


async def test_a_cap_wakes_what_is_left_of_it(outreach: Outreach) -> None:
    await park_on_cap(outreach, 30)
    assert len(await outreach.pass_time(timedelta(days=1))) == 1
    states = await outreach.replica.states()
    assert states == {"SENDING": 1, "READY IN_LINE": 19, "WAITING DAILY_CAP": 10}


async def test_looks_follow_one_another_while_posts_come_back(outreach: Outreach) -> None:
    await park_on_cap(outreach, 30)
    outreach.clock.moment += timedelta(days=1)
    assert await outreach.wake.look()
    assert not await outreach.wake.look()


async def test_a_cap_is_not_promised_twice(outreach: Outreach) -> None:
    """Posts that wait for their turn or their spacing keep their place of the cap."""
    await park_on_cap(outreach, 30)
    (claimed,) = await outreach.pass_time(timedelta(days=1))
    await outreach.settle(claimed)
    for _ in range(5):
        await outreach.pass_time(timedelta(minutes=1))
        assert (await outreach.replica.states())["WAITING DAILY_CAP"] == 10


async def test_a_place_of_a_post_that_was_not_sent_goes_to_another(outreach: Outreach) -> None:
    await park_on_cap(outreach, 30)
    (claimed,) = await outreach.pass_time(timedelta(days=1))
    await outreach.settle(claimed)
    await outreach.pass_time(timedelta(0))
    await outreach.replica.write(
        "update post_job set state = 'CANCELED', state_reason = 'TAKEN_BACK', next_action_time = null, parked_on = ''"
        " where state_reason = 'SPACING' and id in (select id from post_job where state_reason = 'SPACING' limit 5)"
    )
    await outreach.pass_time(SPACING)
    assert (await outreach.replica.states())["WAITING DAILY_CAP"] == 5


async def test_a_look_beside_a_claim_skips_the_account(outreach: Outreach) -> None:
    await park_on_cap(outreach, 2)
    outreach.clock.moment += timedelta(days=1)
    async with outreach.replica.database.transaction() as tx:
        await tx.connection.execute(text("select 1 from account_gate for update"))
        await outreach.wake.look()
    assert await outreach.replica.states() == {"WAITING DAILY_CAP": 2}
    await outreach.wake.look()
    assert await outreach.replica.states() == {"READY IN_LINE": 2}


async def test_posts_that_an_earlier_release_has_moved_on_stay_where_they_are(outreach: Outreach) -> None:
    await park_on_cap(outreach, 2)
    await outreach.replica.write(
        "update post_job set state = 'BLOCKED', state_reason = 'NOT_APPROVED' where draft_id = 'd000'"
    )
    await outreach.pass_time(timedelta(days=1))
    assert await outreach.replica.states() == {"BLOCKED NOT_APPROVED": 1, "SENDING": 1}
    assert await outreach.replica.rows("select 1 from post_job where parked_on <> ''") == []


async def test_a_limit_of_a_newer_release_keeps_nothing_for_ever(outreach: Outreach) -> None:
    await park_on_cap(outreach, 1)
    await outreach.replica.write("update post_job set parked_on = 'moon'")
    await outreach.replica.write("update parked_line set parked_on = 'moon'")
    assert len(await outreach.pass_time(timedelta(days=1))) == 1


async def test_a_schedule_that_changes_has_its_parked_posts_looked_at(outreach: Outreach) -> None:
    await park_on_cap(outreach, 1)
    await outreach.follow(time_zone="Pacific/Kiritimati")
    # There it is the next day already, but what was sent today was sent on both.
    assert await outreach.pass_time(timedelta(0)) == []
    (line,) = await outreach.replica.rows("select wake_time from parked_line")
    assert line.wake_time == NOON.replace(day=3, hour=10)


async def park_on_cap(outreach: Outreach, count: int) -> None:
    """Parks so many e-mails of an account that has used its cap."""
    await outreach.replica.write(
        "insert into reservation select 'acme', 'used-' || n, 1, 1, 'page', 'EMAIL', cast(:now as timestamptz)"
        " from generate_series(1, 20) n",
        now=outreach.now,
    )
    assert await outreach.claim(await outreach.save(count)) == []
    assert await outreach.replica.states() == {"WAITING DAILY_CAP": count}
