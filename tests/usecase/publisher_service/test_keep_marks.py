"""A database that lacks what a mark names is an older copy: it enters the safe mode, and nothing is claimed."""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from nats.aio.client import Client
from sqlalchemy import Row

from devstack.servers.nats import EmbeddedNats
from publisher_service.application.claim_jobs import Retry
from publisher_service.application.keep_marks import KeepMarks
from publisher_service.application.marks import Marks
from publisher_service.wire.marks import marks_from, marks_value
from servicekit.bus.register import Register
from servicekit.run.transient import is_transient
from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import Replica, a_command, claims_in

_KILL_OTHERS = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
"""
OLDER = "update claim_mark set number = number - 1"


@pytest.fixture
def register(own_connection: Client) -> Register:
    return Register(own_connection, "publisher")


def keeping(replica: Replica, register: Register, marks: Marks | None = None) -> KeepMarks:
    return KeepMarks(database=replica.database, clock=replica.clock, marks=marks or replica.marks, register=register)


async def test_a_claim_counts_its_process_up_and_nats_learns_it(replica: Replica, register: Register) -> None:
    keep = keeping(replica, register)
    await keep.start()
    await replica.posts(2)
    assert claims_in(await replica.claim([a_command("d0")]))
    assert claims_in(await replica.claim([a_command("d1")]))
    await keep.exchange()
    process = replica.marks.process
    assert [(row.process, row.number) for row in await replica.rows("select * from claim_mark")] == [(process, 3)]
    stored = marks_from((await register.read()).value)
    assert {name: mark.number for name, mark in stored.items()} == {process: 3}
    assert await active(replica) == []


async def test_a_claim_that_claims_nothing_counts_nothing(replica: Replica) -> None:
    await replica.posts(1, approved=False)
    await replica.claim([a_command("d0")])
    assert await replica.rows("select * from claim_mark") == []


async def test_nothing_is_claimed_on_a_copy_older_than_a_mark_in_nats(
    replica: Replica, another: Replica, register: Register
) -> None:
    await replica.posts(2)
    keep = keeping(replica, register)
    await keep.start()
    assert claims_in(await replica.claim([a_command("d0")]))
    await keep.exchange()
    await replica.write(OLDER)

    await keeping(another, register).start()
    assert [row.reason for row in await active(replica)] == ["MARK_AHEAD"]
    answers = await another.claim([a_command("d1")])
    assert answers == [Retry(timedelta(seconds=5))]
    assert await replica.states() == {"SENDING": 1, "PENDING": 1}


async def test_a_process_notices_a_failover_to_an_older_copy_by_itself(replica: Replica) -> None:
    """Its own memory is a mark, too: NATS may be unreachable."""
    await replica.posts(2)
    assert claims_in(await replica.claim([a_command("d0")]))
    await replica.write("delete from claim_mark")
    assert await replica.claim([a_command("d1")]) == [Retry(timedelta(seconds=5))]
    assert [row.reason for row in await active(replica)] == ["MARK_AHEAD"]


async def test_other_replicas_obey_a_safe_mode_that_they_do_not_know(replica: Replica, another: Replica) -> None:
    await replica.posts(2)
    await replica.claim([a_command("d0")])
    await replica.write("delete from claim_mark")
    await replica.claim([a_command("d0")])
    assert another.marks.known == {}
    assert await another.claim([a_command("d1")]) == [Retry(timedelta(seconds=5))]


async def test_lines_are_not_claimed_in_safe_mode(replica: Replica) -> None:
    names = await replica.posts(2, account="page")
    (first,) = claims_in(await replica.claim([a_command(name, "page") for name in names]))
    await replica.write("update account_gate set open_job_id = null, wake_time = '2020-01-01Z'")
    await replica.write("delete from claim_mark")
    assert await replica.next_in_line() == []
    assert len(await active(replica)) == 1
    assert first.job.fence == 1


async def test_two_replicas_that_notice_share_one_safe_mode(replica: Replica, another: Replica) -> None:
    await replica.posts(2)
    await replica.claim([a_command("d0")])
    await another.claim([a_command("d1")])
    await replica.write("delete from claim_mark")
    await replica.claim([a_command("d0")])
    await another.claim([a_command("d1")])
    assert len(await replica.rows("select * from safe_mode")) == 1


async def test_the_safe_mode_knows_the_age_of_the_copy(replica: Replica, another: Replica, register: Register) -> None:
    keep = keeping(replica, register)
    await keep.start()
    (beaten,) = await replica.rows("select time from claim_mark")
    await keep.beat()
    await keep.exchange()
    (last,) = await replica.rows("select time from claim_mark")
    await replica.write("update claim_mark set number = 1, time = :time", time=beaten.time)
    await keeping(another, register).start()
    (mode,) = await active(replica)
    assert (mode.restored_time, mode.mark_time) == (beaten.time, last.time)


async def test_absent_marks_are_written_again_and_stop_nothing(
    replica: Replica, register: Register, fresh_nats: EmbeddedNats, caplog: pytest.LogCaptureFixture
) -> None:
    keep = keeping(replica, register)
    await keep.start()
    await fresh_nats.kill()
    await fresh_nats.wipe()
    await fresh_nats.start()
    await replica.posts(1)
    assert claims_in(await replica.claim([a_command("d0")]))
    with caplog.at_level(logging.WARNING):
        await eventually(lambda: _exchanged(keep))
    assert "does not have the marks" in caplog.text
    assert marks_from((await register.read()).value) == replica.marks.known
    assert await active(replica) == []


async def test_marks_that_a_person_has_deleted_are_written_again(
    replica: Replica, register: Register, own_connection: Client
) -> None:
    keep = keeping(replica, register)
    await keep.start()
    bucket = await own_connection.jetstream().key_value("publisher")
    await bucket.delete("value")
    async with asyncio.timeout(10):
        await keep.exchange()
    assert marks_from((await register.read()).value) == replica.marks.known
    assert await active(replica) == []


async def test_a_database_in_use_without_marks_is_no_older_one(
    replica: Replica, another: Replica, register: Register
) -> None:
    await replica.posts(1)
    assert claims_in(await replica.claim([a_command("d0")]))
    await keeping(another, register).start()
    assert await active(replica) == []


async def test_a_database_that_was_not_in_use_may_be_a_copy_if_no_mark_tells(
    replica: Replica, another: Replica, register: Register
) -> None:
    """Both stores are lost: the database comes from a backup, and NATS is new."""
    await replica.posts(2)
    assert claims_in(await replica.claim([a_command("d0")]))
    await replica.write("update claim_mark set time = time - interval '31 seconds'")
    (copied,) = await replica.rows("select time from claim_mark")
    await keeping(another, register).start()
    (mode,) = await active(replica)
    assert (mode.reason, mode.restored_time, mode.mark_time) == ("MARKS_LOST", copied.time, None)
    assert await another.claim([a_command("d1")]) == [Retry(timedelta(seconds=5))]


async def test_a_database_that_is_new_is_no_copy(replica: Replica, register: Register) -> None:
    await keeping(replica, register).start()
    assert await active(replica) == []


async def test_replicas_that_write_at_once_keep_the_highest_of_each(
    replica: Replica, another: Replica, register: Register, other_connection: Client
) -> None:
    mine, other = keeping(replica, register), keeping(another, Register(other_connection, "publisher"))
    for keep in (mine, other):
        await keep.beat()
    found = await register.read()
    assert await register.write(marks_value(replica.marks.known), after=found.revision)
    assert not await register.write(marks_value(another.marks.known), after=found.revision)
    await other.exchange()
    assert set(marks_from((await register.read()).value)) == {replica.marks.process, another.marks.process}


async def test_long_ended_processes_are_forgotten_once_covered(replica: Replica, register: Register) -> None:
    ended = Marks("ended")
    await keeping(replica, register, ended).start()
    await replica.write("update claim_mark set time = time - interval '1 hour'")
    old = replace(ended.known["ended"], time=ended.known["ended"].time - timedelta(hours=1))
    assert await register.write(marks_value({"ended": old}), after=(await register.read()).revision)
    await keeping(replica, register).start()
    assert set(marks_from((await register.read()).value)) == {replica.marks.process}


async def test_after_a_loss_of_the_database_the_marks_are_read_again(
    replica: Replica, another: Replica, register: Register
) -> None:
    keep = keeping(replica, register)
    await keep.start()
    other = keeping(another, register)
    await other.start()
    await keep.catch_up()
    assert another.marks.process not in replica.marks.known
    await another.write(_KILL_OTHERS)
    with pytest.raises(ConnectionError):
        await replica.claim([a_command("d0")])
    await keep.catch_up()
    assert another.marks.process in replica.marks.known


async def active(replica: Replica) -> list[Row[Any]]:
    return await replica.rows("select * from safe_mode where active")


async def _exchanged(keep: KeepMarks) -> bool:
    try:
        await keep.exchange()
    except Exception as error:
        if not is_transient(error):
            raise
        return False
    return True
