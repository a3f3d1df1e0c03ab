from datetime import timedelta

from sqlalchemy import text

from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetters
from servicekit.pg.housekeeping import Housekeeping, Retention

HOUR = timedelta(hours=1)


def _housekeeping(database: Database) -> Housekeeping:
    retention = Retention(outbox=HOUR, inbox=HOUR, request_ledger=HOUR, dead_letter=HOUR)
    return Housekeeping(database, DatabaseClock(), retention)


async def _execute(database: Database, statement: str) -> None:
    async with database.read() as connection:
        await connection.execute(text(statement))


async def _ids(database: Database, statement: str) -> list[str]:
    async with database.read() as connection:
        return [each for (each,) in await connection.execute(text(statement))]


async def test_only_acknowledged_events_are_forgotten_however_old_the_others_are(database: Database) -> None:
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


async def test_inbox_ledger_and_dead_letters_are_forgotten_by_age(database: Database) -> None:
    await _execute(
        database,
        """
        with age (name, moment) as (values ('old', now() - interval '2 hours'), ('young', now() - interval '1 minute')),
        a as (insert into inbox select 'c', name, moment from age),
        b as (insert into request_ledger select 'o', 'm', name, '', null, null, moment from age)
        insert into dead_letter select name, 'c', 's', 'r', '', moment from age
        """,
    )
    await _housekeeping(database).step()
    assert await _ids(database, "select event_id from inbox") == ["young"]
    assert await _ids(database, "select request_id from request_ledger") == ["young"]
    assert await _ids(database, "select id from dead_letter") == ["young"]


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
