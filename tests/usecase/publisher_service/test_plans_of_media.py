"""The facts of media are read and dropped by index, however many there are."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.media import drop_media, find_media
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining

ROWS = 20_000
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
FILL = text("""
    insert into media (organization_id, url_digest, shown_url, kind, content_type, sha256, size, width, height,
        page_count, is_animated, is_mislabeled, error_reason, error_message, fetch_time)
    select 'acme', sha256(cast(cast(n as text) as bytea)), '', 'IMAGE', 'image/png', 'hash', 1, 1, 1, 0, false, false,
        '', '', cast(:now as timestamptz) - (n % 100) * interval '1 hour'
    from generate_series(1, :rows) n
""")
DIGESTS = text("select url_digest from media where fetch_time < :before order by url_digest limit 10")


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        await tx.connection.execute(FILL, {"rows": ROWS, "now": NOW})
    if request.param == "analyzed":
        async with database.statement() as connection:
            await connection.execute(text("vacuum analyze"))
    yield database
    await database.dispose()
    await databases.drop(url)


@pytest.fixture
async def explaining(full: Database) -> AsyncIterator[Explaining]:
    async with full.engine.connect() as connection:
        yield Explaining(connection, growing={"media"})


@pytest.fixture
async def digests(full: Database) -> list[bytes]:
    async with full.read() as connection:
        rows = await connection.execute(DIGESTS, {"before": NOW - timedelta(days=2)})
        return [bytes(digest) for digest in rows.scalars()]


async def test_facts_are_read_by_key(explaining: Explaining, digests: list[bytes]) -> None:
    session: Any = explaining
    since = NOW - timedelta(days=9)
    found = await find_media(session, "acme", digests, facts_since=since, problems_since=since)
    assert set(found) == set(digests)
    explaining.check(10)


async def test_old_facts_are_found_by_their_time(explaining: Explaining) -> None:
    session: Any = explaining
    assert await drop_media(session, before=NOW - timedelta(hours=98), limit=50) == 50
    explaining.check(50)
