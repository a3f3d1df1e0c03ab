"""Gauges for operators: posts that are late or need a person, and the lines of accounts."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from publisher_service.adapters.postgres import counts
from publisher_service.adapters.postgres.jobs import LINE_LABELS, insert_jobs
from publisher_service.application import count_jobs
from publisher_service.application.count_jobs import CountJobs
from publisher_service.domain.hold import Scope
from publisher_service.domain.post_job import JobState, PostJob, Reason, Target
from servicekit.pg.database import Database
from testkit.clocks import START, FrozenClock
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.replica import Replica, a_command, a_sent, claims_in

LATER = START + timedelta(hours=1)
SHOWN_AT_ZERO = {
    "_moving{READY}": 0,
    "_moving{SENDING}": 0,
    "_moving{WAITING}": 0,
    "_moving{BLOCKED}": 0,
    "_moving{UNKNOWN}": 0,
    "_attention": 0,
    "_overdue{SCHEDULED}": 0,
    "_overdue{READY}": 0,
    "_age{SCHEDULED}": 0,
    "_age{READY}": 0,
    **{f"_holds{{{scope}}}": 0 for scope in Scope},
    **{f"_on_hold{{{scope}}}": 0 for scope in Scope},
    "_lag": 0,
    **{f"_lines{{{label}}}": 0 for label in LINE_LABELS},
}


class Gauge:
    def __init__(self, name: str, shown: dict[str, float]) -> None:
        self._name = name
        self._shown = shown

    def set(self, value: float, labels: Mapping[str, str] | None = None) -> None:
        label = "".join(f"{{{each}}}" for each in (labels or {}).values())
        self._shown[f"{self._name}{label}"] = value


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    shown: dict[str, float] = {}
    for name in ("_moving", "_attention", "_overdue", "_age", "_lines", "_holds", "_on_hold", "_lag"):
        monkeypatch.setattr(count_jobs, name, Gauge(name, shown))
    return shown


async def test_every_gauge_shows_zero_from_the_start(database: Database, shown: dict[str, float]) -> None:
    count = _count(database)
    assert shown == SHOWN_AT_ZERO
    await count.step()
    assert shown == SHOWN_AT_ZERO


async def test_what_is_being_sent_is_counted_by_claims_of_either_release(
    replica: Replica, shown: dict[str, float]
) -> None:
    names = await replica.posts(4)
    settled, *_ = claims_in(await replica.claim([a_command(name) for name in names]))
    await replica.settle([a_sent(settled)])
    last = "draft_id = (select max(draft_id) from post_job where state = 'SENDING')"
    await replica.write(f"update post_job set next_action_time = lease_end, lease_end = null where {last}")  # noqa: S608
    await _count(replica.database).step()
    assert shown["_moving{SENDING}"] == 3


async def test_holds_their_posts_and_a_release_that_stands_still_are_counted(
    replica: Replica, shown: dict[str, float]
) -> None:
    names = await replica.posts(3)
    await replica.hold("", scope=Scope.ORGANIZATION)
    await replica.hold("bakery", scope=Scope.BRAND, hold="brand")
    for name in names:
        await replica.hold(f"page-{name}", hold=name)
    await replica.claim([a_command(name) for name in names])
    count = _count(replica.database)
    await count.step()
    assert (shown["_holds{ORGANIZATION}"], shown["_holds{BRAND}"], shown["_holds{ACCOUNT}"]) == (1, 1, 3)
    assert (shown["_on_hold{ORGANIZATION}"], shown["_on_hold{ACCOUNT}"], shown["_lag"]) == (3, 0, 0)
    await replica.release("hold")
    await replica.write("update hold_release set next_time = :then", then=START - timedelta(minutes=3))
    await count.step()
    assert (shown["_holds{ORGANIZATION}"], shown["_lag"]) == (0, 180)


async def test_late_posts_and_posts_that_need_a_person_are_counted(database: Database, shown: dict[str, float]) -> None:
    await _insert(
        database,
        _job("due-soon", JobState.SCHEDULED, due=LATER),
        _job("just-due", JobState.SCHEDULED, due=START - timedelta(seconds=59)),
        _job("late", JobState.SCHEDULED, due=START - timedelta(seconds=61)),
        _job("later", JobState.SCHEDULED, due=START - timedelta(seconds=90)),
        _job("second", JobState.READY, Reason.IN_LINE, due=START - timedelta(minutes=5)),
        _job("third", JobState.READY, Reason.IN_LINE, due=START - timedelta(seconds=30)),
        _job("other-account", JobState.READY, Reason.IN_LINE, account="shop", due=START),
        _job("disconnected", JobState.BLOCKED, Reason.ACCOUNT_NOT_CONNECTED, account="gone", due=START),
        _job("held", JobState.BLOCKED, Reason.ACCOUNT_ON_HOLD, account="held", due=START),
        _job("doubtful", JobState.NEEDS_ATTENTION, due=START - timedelta(days=9)),
        _job("missed", JobState.MISSED, due=START - timedelta(days=2)),
    )
    count = _count(database)
    await count.step()
    assert shown == SHOWN_AT_ZERO | {
        "_moving{READY}": 3,
        "_moving{BLOCKED}": 2,
        "_on_hold{ACCOUNT}": 1,
        "_attention": 1,
        "_overdue{SCHEDULED}": 2,
        "_overdue{READY}": 1,
        "_age{SCHEDULED}": 90,
        "_age{READY}": 300,
        "_lines{IN_LINE}": 2,
        "_lines{ACCOUNT_NOT_CONNECTED}": 1,
        "_lines{ACCOUNT_ON_HOLD}": 1,
    }
    assert {each.name: each.value for each in await count.numbers() if each.value} == {
        "post_jobs.ready": 3,
        "post_jobs.blocked": 2,
        "post_jobs.on_hold.account": 1,
        "post_jobs.needs_attention": 1,
        "post_jobs.overdue.scheduled": 2,
        "post_jobs.overdue.ready": 1,
        "post_jobs.overdue.age.scheduled": 90,
        "post_jobs.overdue.age.ready": 300,
        "account_lines.in_line": 2,
        "account_lines.account_not_connected": 1,
        "account_lines.account_on_hold": 1,
    }


async def test_a_count_stops_at_its_bound_and_still_finds_the_oldest(database: Database) -> None:
    oldest = START - timedelta(hours=3)
    late = [_job(f"d{number}", JobState.SCHEDULED, due=oldest + timedelta(minutes=number)) for number in range(5)]
    lines = [_job(f"l{number}", JobState.READY, Reason.IN_LINE, account=f"a{number}", due=START) for number in range(5)]
    doubtful = [_job(f"n{number}", JobState.NEEDS_ATTENTION, due=START) for number in range(5)]
    await _insert(database, *reversed(late), *lines, *doubtful)
    async with database.read() as connection:
        overdue = await counts.overdue_by_state(connection, before=START, most=3)
        assert overdue["SCHEDULED"] == counts.Overdue(jobs=3, oldest=oldest)
        assert await counts.lines_by_reason(connection, most=3) == {"IN_LINE": 3}
        assert await counts.needing_attention(connection, most=3) == 3


async def test_a_count_that_takes_long_is_made_less_often(database: Database, shown: dict[str, float]) -> None:
    """A count comes after two hundred times as long, at the latest after five minutes."""
    clock, takes = FrozenClock(), timedelta(seconds=1)

    class Slow(FrozenDatabaseClock):
        def shown(self, moment: datetime) -> datetime:
            clock.advance(takes)
            return moment

    async def is_counted() -> bool:
        shown.clear()
        await count.step()
        return bool(shown)

    count = CountJobs(database, Slow(), clock)
    assert await is_counted()
    clock.advance(timedelta(seconds=198))
    assert not await is_counted()
    clock.advance(timedelta(seconds=1))
    assert await is_counted()
    takes = timedelta(seconds=90)
    clock.advance(timedelta(seconds=200))
    assert await is_counted()
    clock.advance(timedelta(seconds=209))
    assert not await is_counted()
    clock.advance(timedelta(seconds=1))
    assert await is_counted()


def _count(database: Database) -> CountJobs:
    return CountJobs(database, FrozenDatabaseClock(), FrozenClock())


async def _insert(database: Database, *jobs: PostJob) -> None:
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, jobs)


def _job(draft: str, state: JobState, reason: Reason = Reason.NONE, *, account: str = "page", due: datetime) -> PostJob:
    job = PostJob(
        organization_id="acme",
        id=f"job-{draft}",
        draft_id=draft,
        target=Target(social_account_id=account, channel="facebook"),
        state=state,
        state_reason=reason,
        schedule_time=due,
        create_time=START,
        update_time=START,
    )
    moves = state in (JobState.READY, JobState.BLOCKED)
    return replace(job, next_action_time=LATER) if moves else job
