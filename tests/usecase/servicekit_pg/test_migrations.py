"""Migrations as a service has them: a package of numbered files, here made for the test."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Column, MetaData, Table, Text, text

from servicekit.pg import migrations
from servicekit.pg.database import Database
from servicekit.pg.migrations.alembic_run import drift
from servicekit.pg.tables import add_service_tables

FIRST = """
from alembic import op
from servicekit.pg.migrations.service_tables import create_v1, upgrade_to_v2, upgrade_to_v3, upgrade_to_v4

revision = "0001"
down_revision = None

def upgrade():
    create_v1()
    upgrade_to_v2()
    upgrade_to_v3()
    upgrade_to_v4()
    op.execute("create table thing (name text not null)")
"""
SECOND = """
from alembic import op

revision = "0002"
down_revision = "0001"

def upgrade():
    op.execute("alter table thing add column colour text")
    op.execute("select pg_sleep(0.2)")
"""
BROKEN = """
from alembic import op

revision = "0003"
down_revision = "0002"

def upgrade():
    op.execute("create table half (name text)")
    op.execute("select 1/0")
"""

Packages = Callable[..., str]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    """Makes an importable package with the given migrations."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, *sources: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        for number, source in enumerate(sources, start=1):
            (folder / f"{number:04}_step.py").write_text(source)
        return name

    return make


@pytest.fixture
async def blank(empty_database: str) -> Database:
    return Database(empty_database, application="test", pool_size=2)


async def _revision(url: str) -> str:
    database = Database(url, application="test")
    async with database.read() as connection:
        revision = str((await connection.execute(text("select version_num from alembic_version"))).scalar_one())
    await database.dispose()
    return revision


def _declared(*, colour: bool = True) -> MetaData:
    metadata = MetaData()
    add_service_tables(metadata)
    thing = Table("thing", metadata, Column("name", Text, nullable=False))
    if colour:
        thing.append_column(Column("colour", Text))
    return metadata


async def test_an_empty_database_is_upgraded_to_the_newest_revision(empty_database: str, package: Packages) -> None:
    steps = package("steps_from_empty", FIRST, SECOND)
    assert await migrations.pending(empty_database, steps)
    await migrations.upgrade(empty_database, steps)
    assert await _revision(empty_database) == "0002"
    assert not await migrations.pending(empty_database, steps)


async def test_migrations_create_the_declared_tables(empty_database: str, package: Packages) -> None:
    await migrations.upgrade(empty_database, package("steps_drift", FIRST, SECOND))
    assert await drift(empty_database, _declared()) == []
    assert len(await drift(empty_database, _declared(colour=False))) == 1


async def test_only_missing_migrations_run(empty_database: str, package: Packages) -> None:
    await migrations.upgrade(empty_database, package("steps_one", FIRST))
    await migrations.upgrade(empty_database, package("steps_two", FIRST, SECOND))
    assert await _revision(empty_database) == "0002"


async def test_a_second_upgrade_does_nothing_and_imports_no_alembic(
    empty_database: str, package: Packages, tmp_path: Path
) -> None:
    steps = package("steps_again", FIRST)
    await migrations.upgrade(empty_database, steps)
    program = f"""
import asyncio, sys
from servicekit.pg import migrations
asyncio.run(migrations.upgrade({empty_database!r}, {steps!r}))
heavy = {{"alembic", "sqlalchemy"}} & sys.modules.keys()
assert not heavy, heavy
"""
    found = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program],
        env=dict(os.environ) | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr


async def test_two_upgrades_at_once_take_turns(empty_database: str, package: Packages) -> None:
    steps = package("steps_race", FIRST, SECOND)
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(migrations.upgrade(empty_database, steps))
    assert await _revision(empty_database) == "0002"


async def test_a_step_that_fails_leaves_the_steps_before_it(empty_database: str, package: Packages) -> None:
    steps = package("steps_broken", FIRST, SECOND, BROKEN)
    with pytest.raises(Exception, match="division by zero"):
        await migrations.upgrade(empty_database, steps)
    assert await _revision(empty_database) == "0002"
    assert await drift(empty_database, _declared()) == [], "nothing of the failed step is left"


async def test_a_process_refuses_a_database_that_is_too_old(
    blank: Database, empty_database: str, package: Packages
) -> None:
    old, new = package("steps_old", FIRST), package("steps_new", FIRST, SECOND)
    with pytest.raises(migrations.SchemaTooOld, match="nothing"):
        await migrations.check(blank, old)
    await migrations.upgrade(empty_database, old)
    await migrations.check(blank, old)
    with pytest.raises(migrations.SchemaTooOld, match=r"0001.*0002"):
        await migrations.check(blank, new)
    await blank.dispose()


async def test_a_process_works_with_a_database_that_is_newer(
    blank: Database, empty_database: str, package: Packages
) -> None:
    old, new = package("steps_before", FIRST), package("steps_after", FIRST, SECOND)
    await migrations.upgrade(empty_database, new)
    await migrations.check(blank, old)
    assert not await migrations.pending(empty_database, old)
    await blank.dispose()


async def test_a_version_table_without_a_version_is_too_old(
    blank: Database, empty_database: str, package: Packages
) -> None:
    steps = package("steps_interrupted", FIRST)
    async with blank.statement() as connection:
        await connection.execute(text("create table alembic_version (version_num varchar(32) not null)"))
    with pytest.raises(migrations.SchemaTooOld):
        await migrations.check(blank, steps)
    assert await migrations.pending(empty_database, steps)
    await migrations.upgrade(empty_database, steps)
    await migrations.check(blank, steps)
    await blank.dispose()
