"""A database with the tables that every service has and no others, for tests of servicekit itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devstack.servers.postgres import EmbeddedPostgres
from servicekit.pg.database import Database
from testkit.databases import Databases

MIGRATION = """
from servicekit.pg.migrations.service_tables import create_v1, upgrade_to_v2, upgrade_to_v3

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_v1()
    upgrade_to_v2()
    upgrade_to_v3()
"""


@pytest.fixture(scope="session")
async def service_tables(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Databases:
    """Databases whose template has had the migrations of the common tables, the way each service runs them."""
    versions: Path = tmp_path_factory.mktemp("service_tables")
    (versions / "0001_first.py").write_text(MIGRATION)

    async def migrate(url: str, _service: str) -> None:
        from servicekit.pg.migrations.alembic_run import run

        await run(url, versions)

    return Databases(postgres, migrate)


@pytest.fixture
async def tables_url(service_tables: Databases) -> AsyncIterator[str]:
    url = await service_tables.migrated("service_tables")
    yield url
    await service_tables.drop(url)


@pytest.fixture
async def database(tables_url: str) -> AsyncIterator[Database]:
    """For this test alone."""
    database = Database(tables_url, application="test", pool_size=8)
    yield database
    await database.dispose()
