"""Schedules of accounts as they stand on the gates; an older event changes nothing."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

from civil.windows import SendWindow
from publisher_service.application.follow_schedules import FollowSchedules
from publisher_service.domain.account_schedule import AccountSchedule
from tests.usecase.publisher_service.replica import Replica

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
OFFICE = SendWindow(days=frozenset({1, 2, 3, 4, 5}), start=time(9), end=time(18))


def a_schedule(version: int = 1, **fields: Any) -> AccountSchedule:
    known: dict[str, Any] = {"organization_id": "acme", "social_account_id": "page", "time_zone": "Europe/Berlin"}
    return AccountSchedule(version=version, **known | fields)


async def follow(replica: Replica, *schedules: AccountSchedule, now: datetime = NOW) -> None:
    use_case = FollowSchedules(lambda: None)
    await replica.database.run(lambda tx: use_case(tx, schedules, now))


async def the_gate(replica: Replica) -> Any:
    (gate,) = await replica.rows("select * from account_gate where social_account_id = 'page'")
    return gate


async def test_a_schedule_sets_the_instants_of_the_gate(replica: Replica) -> None:
    await replica.posts(1, account="page")
    await follow(replica, a_schedule(window=OFFICE, min_spacing=timedelta(minutes=5), enabled=False))
    gate = await the_gate(replica)
    assert (gate.open_from, gate.open_until) == (NOW.replace(hour=8), NOW.replace(hour=17))
    assert (gate.enabled, gate.post_spacing, gate.relabel) == (False, timedelta(minutes=5), True)
    assert gate.wake_time is None


async def test_an_account_that_is_enabled_again_is_looked_at(replica: Replica) -> None:
    await replica.posts(1, account="page")
    await follow(replica, a_schedule(enabled=False))
    await follow(replica, a_schedule(2), now=NOW + timedelta(hours=1))
    gate = await the_gate(replica)
    assert (gate.enabled, gate.lined, gate.wake_time) == (True, True, NOW + timedelta(hours=1))


async def test_an_older_schedule_changes_nothing(replica: Replica) -> None:
    await follow(replica, a_schedule(3, window=OFFICE))
    await follow(replica, a_schedule(2, enabled=False))
    gate = await the_gate(replica)
    assert (gate.enabled, gate.open_from) == (True, NOW.replace(hour=8))


async def test_of_several_events_the_newest_counts(replica: Replica) -> None:
    await follow(replica, a_schedule(3, window=OFFICE), a_schedule(4, enabled=False), a_schedule(2))
    gate = await the_gate(replica)
    assert (gate.enabled, gate.open_from) == (False, None)


async def test_a_deleted_schedule_limits_nothing_and_does_not_come_back(replica: Replica) -> None:
    await follow(replica, a_schedule(1, window=OFFICE, enabled=False, min_spacing=timedelta(hours=1)))
    gone = AccountSchedule(organization_id="acme", social_account_id="page", version=2, deleted=True)
    await follow(replica, gone)
    await follow(replica, a_schedule(1, window=OFFICE, enabled=False))
    gate = await the_gate(replica)
    assert (gate.enabled, gate.open_from, gate.open_until, gate.post_spacing) == (True, None, None, None)


async def test_a_schedule_of_an_unknown_account_opens_no_gate(replica: Replica) -> None:
    await follow(replica, a_schedule())
    assert not (await the_gate(replica)).connected


async def test_spacing_that_begins_counts_from_the_last_post(replica: Replica) -> None:
    await replica.posts(1, account="page")
    for minute, outcome in ((1, "SUCCESS"), (2, "UNKNOWN"), (3, "FAILED")):
        await replica.write(
            "insert into activity values ('acme', 'page', :id, 'job', 'POST', :outcome, :time)",
            id=f"a{minute}",
            outcome=outcome,
            time=NOW.replace(minute=minute),
        )
    await follow(replica, a_schedule(min_spacing=timedelta(minutes=5)))
    assert (await the_gate(replica)).last_post_time == NOW.replace(minute=2)
