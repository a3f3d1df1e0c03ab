"""Brings a database to the newest revision, and says whether it is there.

SQLAlchemy is imported where it is used: the supervisor asks `pending` at every start and needs none of it.
"""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    from servicekit.pg.database import Database

_UNDEFINED_TABLE = "42P01"
_VERSION = "select version_num from alembic_version"


class SchemaTooOld(Exception):
    """The database lacks migrations that this process needs."""


def newest(package: str) -> str:
    names = (entry.name for entry in files(package).iterdir())
    return max(name[:4] for name in names if name[:4].isdigit() and name.endswith(".py"))


async def pending(url: str, package: str) -> bool:
    connection = await asyncpg.connect(url.replace("postgresql+asyncpg://", "postgresql://", 1))
    try:
        found = await connection.fetchval(_VERSION)
    except asyncpg.UndefinedTableError:
        found = None
    finally:
        await connection.close()
    return found is None or found < newest(package)


async def upgrade(url: str, package: str) -> None:
    """Runs what is pending. Two processes that do so at once take turns, and the second finds nothing to do."""
    if not await pending(url, package):
        return
    from servicekit.pg.migrations.alembic_run import run  # heavy, and rarely needed

    await run(url, Path(str(files(package))))


async def revision(database: "Database") -> str | None:
    """The one that the database is at; None before the first."""
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError

    from servicekit.pg.errors import sqlstate

    try:
        async with database.read() as connection:
            return (await connection.execute(text(_VERSION))).scalar()
    except DBAPIError as error:
        if sqlstate(error) != _UNDEFINED_TABLE:
            raise
        return None


async def check(database: "Database", package: str) -> None:
    """A newer database is fine: migrations only add until every old process is gone."""
    wanted = newest(package)
    found = await revision(database)
    if found is None or found < wanted:
        raise SchemaTooOld(
            f"the database is at revision {found or 'nothing'}, this process needs {wanted}: run the migrations first"
        )
