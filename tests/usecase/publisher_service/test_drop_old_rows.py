"""Old reservations and preparations of ended posts go; what may still be counted, published or looked up stays."""

from datetime import timedelta

import pytest

from publisher_service.application.drop_old_rows import DropOldRows
from tests.usecase.publisher_service.containers import Containers
from tests.usecase.publisher_service.outreach import Outreach
from tests.usecase.publisher_service.visiting import Visiting


async def test_reservations_are_dropped_after_four_days(outreach: Outreach) -> None:
    await outreach.claim(await outreach.save(1))
    drop = DropOldRows(outreach.replica.database, outreach.clock)
    outreach.clock.moment += timedelta(days=4)
    assert not await drop()
    assert await outreach.used() == 1
    outreach.clock.moment += timedelta(seconds=1)
    assert not await drop()
    assert await outreach.replica.rows("select 1 from reservation") == []


@pytest.fixture
async def published(containers: Containers) -> Containers:
    await containers.claim()
    await containers.work()
    (claimed,) = await containers.claim()
    await containers.send(claimed)
    assert await containers.job() == "PUBLISHED"
    return containers


async def _left(containers: Containers) -> int:
    drop = DropOldRows(containers.replica.database, containers.replica.clock)
    assert not await drop()
    return len(await containers.replica.rows("select 1 from preparation"))


async def _age(containers: Containers, age: timedelta) -> None:
    await containers.replica.write("update preparation set expire_time = now() - cast(:age as interval)", age=age)


async def test_a_preparation_goes_a_day_after_its_handle(published: Containers) -> None:
    await _age(published, timedelta(hours=23))
    assert await _left(published) == 1
    await _age(published, timedelta(hours=25))
    assert await _left(published) == 0


async def test_one_that_was_never_begun_goes_at_once(published: Containers) -> None:
    await published.replica.write("update preparation set state = 'PENDING', expire_time = null, begin_time = null")
    assert await _left(published) == 0


@pytest.mark.parametrize(
    "change",
    [
        "update post_job set state = 'NEEDS_ATTENTION', next_action_time = null",
        "update post_job set state = 'UNKNOWN'",
        "update post_job set state = 'SENDING', lease_end = now(), next_action_time = null",
        "update post_job set state = 'WAITING'",
        "update post_job set state = 'BLOCKED'",
        "update post_job set state = 'READY'",
    ],
)
async def test_the_preparation_of_a_post_that_has_not_ended_stays(containers: Containers, change: str) -> None:
    await containers.claim()
    await containers.work()
    await _age(containers, timedelta(days=9))
    await containers.replica.write(change)
    assert await _left(containers) == 1


async def test_one_that_a_process_looks_at_stays(published: Containers) -> None:
    await _age(published, timedelta(days=9))
    await published.replica.write("update preparation set next_time = now()")
    assert await _left(published) == 1


async def test_a_further_run_is_prepared_again(containers: Containers) -> None:
    await containers.claim()
    await containers.work()
    await _age(containers, timedelta(days=9))
    await containers.replica.write("update post_job set state = 'MISSED', next_action_time = null")
    assert await _left(containers) == 0
    await containers.replica.write("update post_job set state = 'READY', run = run + 1, next_action_time = now()")
    assert await containers.claim() == []
    await containers.work()
    assert await containers.state() == "READY"


async def test_visits_go_an_hour_after_their_end_and_the_journal_after_90_days(visiting: Visiting) -> None:
    replica = visiting.office.replica
    await visiting.start()
    await visiting.office.connect("page", await visiting.office.issue("page"))
    await visiting.office.make_due("page")
    await visiting.office.run()
    drop = DropOldRows(replica.database, replica.clock)
    ends = "update connect_session set expire_time = now() - cast(:age as interval)"
    begins = "update credential_refresh set begin_time = now() - cast(:age as interval)"
    await replica.write(ends, age=timedelta(minutes=59))
    await replica.write(begins, age=timedelta(days=89))
    assert not await drop()
    assert len(await visiting.sessions()) == len(await visiting.office.journal("page")) == 1
    await replica.write(ends, age=timedelta(minutes=61))
    await replica.write(begins, age=timedelta(days=91))
    assert not await drop()
    assert await visiting.sessions() == await visiting.office.journal("page") == []
