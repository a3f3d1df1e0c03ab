"""Upgrades a database to the newest revision, and checks whether it is there.

SQLAlchemy is imported where it is used: the supervisor calls `pending` at every start and does not need it.
"""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from servicekit.run.addresses import Misconfigured
from servicekit.run.settings import SettingsError

if TYPE_CHECKING:
    from servicekit.pg.database import Database

_UNDEFINED_TABLE = "42P01"
# A comment on Alembic's table names the owner of the database; earlier releases have not written one.
_STATE = "select version_num, coalesce(obj_description('alembic_version'::regclass), '') from alembic_version"


class SchemaTooOld(SettingsError):
    """The database lacks migrations that this process needs."""


class UnknownRevision(SettingsError):
    """No migration has that number."""


@dataclass(frozen=True, slots=True)
class SchemaState:
    revision: str  # empty before the first migration
    owner: str  # the service; empty if it was not recorded


_EMPTY = SchemaState("", "")


def revisions(package: str) -> list[str]:
    """Returns the numbers of all migrations, in order."""
    names = (entry.name for entry in files(package).iterdir())
    return sorted(name[:4] for name in names if name[:4].isdigit() and name.endswith(".py"))


def newest(package: str) -> str:
    return revisions(package)[-1]


def owner_of(package: str) -> str:
    """Returns the service of a package of migrations; empty for any other package."""
    name, separator, _ = package.partition("_service.")
    return name if separator else ""


async def state(url: str) -> SchemaState:
    """Reads revision and owner, without SQLAlchemy."""
    connection = await asyncpg.connect(url.replace("postgresql+asyncpg://", "postgresql://", 1))
    try:
        row = await connection.fetchrow(_STATE)
    except asyncpg.UndefinedTableError:
        return _EMPTY
    finally:
        await connection.close()
    return SchemaState(*row) if row else _EMPTY


async def pending(url: str, package: str) -> bool:
    return (await state(url)).revision < newest(package)


async def plan(url: str, package: str, to: str = "") -> tuple[str, str]:
    """Returns the current revision and the one after an upgrade. Refuses what `upgrade` refuses."""
    found, wanted = await state(url), to or newest(package)
    _check_owner(found, package)
    if wanted not in revisions(package):
        raise UnknownRevision(f"there is no migration {wanted}; the newest is {newest(package)}")
    return found.revision, wanted


async def upgrade(url: str, package: str, to: str = "") -> None:
    """Runs pending migrations, up to `to` or the newest. Never downgrades.

    Of two concurrent processes the second waits, and finds nothing to do.
    """
    found, wanted = await plan(url, package, to)
    if found >= wanted:
        return
    from servicekit.pg.migrations.alembic_run import run  # heavy, and rarely needed

    await run(url, Path(str(files(package))), to=wanted, owner=owner_of(package))


async def revision(database: "Database") -> str:
    """Returns the current revision; empty before the first migration."""
    return (await _state(database)).revision


async def check(database: "Database", package: str) -> None:
    """Raises SchemaTooOld if migrations are missing. A newer database is fine, since migrations only add."""
    found, wanted = await _state(database), newest(package)
    _check_owner(found, package)
    if found.revision < wanted:
        service = owner_of(package)
        raise SchemaTooOld(
            f"the database is at revision {found.revision or 'nothing'}, this process needs {wanted}: "
            f"run postflow-migrate {service or 'first'}"
        )


async def _state(database: "Database") -> SchemaState:
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError

    from servicekit.pg.errors import sqlstate

    try:
        async with database.read() as connection:
            row = (await connection.execute(text(_STATE))).first()
    except DBAPIError as error:
        if sqlstate(error) != _UNDEFINED_TABLE:
            raise
        return _EMPTY
    return SchemaState(*row) if row else _EMPTY


def _check_owner(found: SchemaState, package: str) -> None:
    service = owner_of(package)
    if found.owner and service and found.owner != service:
        raise Misconfigured("database_url", f"this is the database of {found.owner}, not of {service}")
