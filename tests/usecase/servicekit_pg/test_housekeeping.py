from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetters, DeadLettersFull
from servicekit.pg.housekeeping import Housekeeping, Retention

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def _housekeeping(database: Database) -> Housekeeping:
    retention = Retention(outbox=HOUR, inbox=HOUR, request_ledger=HOUR, redriven_letters=HOUR, archived_letters=DAY)
    return Housekeeping(database, DatabaseClock(), retention)


async def _execute(database: Database, statement: str) -> None:
    async with database.statement() as connection:
        await connection.execute(text(statement))


async def _ids(database: Database, statement: str) -> list[Any]:
    async with database.statement() as connection:
        return [each for (each,) in await connection.execute(text(statement))]


async def test_only_acknowledged_events_are_deleted(database: Database) -> None:
    await _execute(
        database,
        """
        insert into outbox (event_id, subject, payload, create_time, stream_time, stream_sequence) values
        ('old and open', 's', '', now() - interval '9 days', null, null),
        ('old', 's', '', now() - interval '2 hours', now(), 1),
        ('young', 's', '', now() - interval '59 minutes', now(), 2)
        """,
    )
    assert not await _housekeeping(database).step()
    assert await _ids(database, "select event_id from outbox order by position") == ["old and open", "young"]


async def test_inbox_and_ledger_are_deleted_by_age(database: Database) -> None:
    await _execute(
        database,
        """
        with age (name, moment) as (values ('old', now() - interval '2 hours'), ('young', now() - interval '1 minute')),
        a as (insert into inbox select 'c', name, moment from age)
        insert into request_ledger select 'o', 'm', name, '', null, null, moment from age
        """,
    )
    await _housekeeping(database).step()
    assert await _ids(database, "select event_id from inbox") == ["young"]
    assert await _ids(database, "select request_id from request_ledger") == ["young"]


async def test_only_redriven_and_archived_letters_are_deleted(database: Database) -> None:
    await _execute(
        database,
        """
        insert into dead_letter (id, consumer, subject, reason, payload, create_time, state, end_time) values
        ('open', 'c', 's', 'r', '', now() - interval '9 years', 'OPEN', null),
        ('redriven', 'c', 's', 'r', '', now() - interval '9 years', 'REDRIVEN', now() - interval '2 hours'),
        ('redriven now', 'c', 's', 'r', '', now() - interval '9 years', 'REDRIVEN', now()),
        ('archived', 'c', 's', 'r', '', now() - interval '9 years', 'ARCHIVED', now() - interval '2 days'),
        ('archived late', 'c', 's', 'r', '', now() - interval '9 years', 'ARCHIVED', now() - interval '2 hours')
        """,
    )
    await _housekeeping(database).step()
    assert await _ids(database, "select id from dead_letter order by id") == ["archived late", "open", "redriven now"]


async def test_the_outbox_is_emptied_behind_unacknowledged_events(database: Database) -> None:
    await _execute(
        database,
        """
        insert into outbox (event_id, subject, payload, create_time, stream_time, stream_sequence)
        select n::text, 's', '', now() - interval '2 hours', taken, case when taken is not null then n end
        from generate_series(1, 12000) as n, lateral (select case when n > 6000 then now() end) as answer (taken)
        """,
    )
    housekeeping = _housekeeping(database)
    for _ in range(2):
        while await housekeeping.step():
            pass
        left = await _ids(database, "select count(*) from outbox where stream_sequence is not null")
        assert (left, await _ids(database, "select count(*) from outbox")) == ([0], [6000])


async def test_replicas_clean_up_without_waiting_for_each_other(database: Database) -> None:
    await _execute(
        database,
        "insert into inbox select 'c', n::text, now() - interval '2 hours' from generate_series(1, 8000) as n",
    )
    async with database.transaction() as other:
        taken = text("select event_id from inbox order by receive_time limit 5000 for update")
        assert len((await other.connection.execute(taken)).all()) == 5000
        await _housekeeping(database).step()
        assert await _ids(database, "select count(*) from inbox") == [5000]


async def test_a_long_neglected_table_is_emptied_in_bounded_steps(database: Database) -> None:
    await _execute(
        database,
        """
        insert into inbox select 'c', n::text, now() - interval '2 hours' - n * interval '1 second'
        from generate_series(1, 12000) as n
        """,
    )
    housekeeping = _housekeeping(database)
    left = []
    more = True
    while more:
        more = await housekeeping.step()
        left.append(len(await _ids(database, "select event_id from inbox")))
    assert left == [7000, 2000, 0]


async def test_the_oldest_go_first(database: Database) -> None:
    await _execute(
        database,
        """
        insert into inbox select 'c', n::text, now() - interval '2 hours' - n * interval '1 second'
        from generate_series(1, 6000) as n
        """,
    )
    await _housekeeping(database).step()
    assert sorted(map(int, await _ids(database, "select event_id from inbox"))) == list(range(1, 1001))


async def test_a_dead_letter_is_kept_with_its_reason(database: Database) -> None:
    letters = DeadLetters(database, DatabaseClock(), Uuid7Source())
    await letters.add(consumer="c", subject="events.x", reason="the envelope cannot be decoded", payload=b"\xff\x00")
    await letters.add(consumer="c", subject="events.y", reason="another", payload=b"")

    first, second = await letters.list()
    assert (first.consumer, first.subject, first.payload) == ("c", "events.x", b"\xff\x00")
    assert first.reason == "the envelope cannot be decoded"
    assert second.create_time >= first.create_time
    assert len(await letters.list(limit=1)) == 1


async def test_a_full_table_of_dead_letters_accepts_no_other(database: Database) -> None:
    letters = DeadLetters(database, DatabaseClock(), Uuid7Source(), most_open=2)
    for consumer in ("a", "b"):
        await letters.add(consumer=consumer, subject="s", reason="r", payload=b"")
    with pytest.raises(DeadLettersFull):
        await letters.add(consumer="a", subject="s", reason="r", payload=b"")
    first = (await letters.list())[0]
    assert await letters.archive([first.id]) == [first.id]
    await letters.add(consumer="a", subject="s", reason="r", payload=b"")
    assert await letters.count_open() == {"a": 1, "b": 1}
