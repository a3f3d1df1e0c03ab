"""Drives Alembic from code: no ini file, one environment for all services."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, MetaData, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from servicekit.pg.database import async_url

_LOCK = "select pg_advisory_lock(hashtext('postflow migrations'))"


async def run(url: str, versions: Path, *, to: str = "head", owner: str = "") -> None:
    """Runs migrations and records the `owner`, so that no other service uses the database by mistake."""
    async with _connect(url) as connection:
        await connection.execute(text(_LOCK))  # held until the connection closes
        await connection.commit()
        await connection.run_sync(_upgrade, versions, to)
        if owner:
            await connection.execute(text(f"comment on table alembic_version is '{_word(owner)}'"))
        await connection.commit()


async def drift(url: str, metadata: MetaData) -> list[str]:
    """Returns the differences between the database and the tables that the code declares."""
    async with _connect(url) as connection:
        return await connection.run_sync(_compare, metadata)


@asynccontextmanager
async def _connect(url: str) -> AsyncIterator[AsyncConnection]:
    engine = create_async_engine(async_url(url), poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


def _word(text: str) -> str:
    """Returns the text, which must be a word: a comment takes no bind parameter."""
    assert text.isidentifier(), text
    return text


def _upgrade(connection: Connection, versions: Path, to: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "environment"))
    config.set_main_option("version_locations", str(versions))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def _compare(connection: Connection, metadata: MetaData) -> list[str]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return [str(difference) for difference in compare_metadata(context, metadata)]
