"""A running stack in a temporary folder, with what a measurement reads of it."""

import base64
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import databases, events
from benchmarks.databases import Databases
from benchmarks.events import Events
from benchmarks.processes import Processes
from benchmarks.seed import Seeder
from devstack.servers.postgres import EmbeddedPostgres
from devstack.stack import Stack
from publisher_service.adapters.vault import Vault
from servicekit.clock import SystemClock
from servicekit.run.settings import Secret

_OPTIONS: Mapping[str, str] = {"wal_keep_size": "8GB"}
"""The WAL of a run is read at its end, also what a checkpoint would recycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    stack: Stack
    seeder: Seeder
    stored: Databases
    streams: Events

    @property
    def postgres(self) -> EmbeddedPostgres:
        assert self.stack.postgres is not None
        return self.stack.postgres

    def processes(self) -> Processes:
        """Returns the processes that run now; the backends of our own connections do not count."""
        return Processes.of(self.stack, uncounted=self.stored.backends)


@asynccontextmanager
async def running(settings: Mapping[str, str] | None = None) -> AsyncIterator[Site]:
    """Starts a stack; `settings` are further variables of its services' environment."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    environment = {
        "POSTFLOW_PUBLISHER_CREDENTIALS_KEY": key,
        # With the stack's file too, its key would be the first, and Publisher would seal every account again meanwhile.
        "POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE": "",
        "POSTFLOW_LOG_LEVEL": "WARNING",
        **(settings or {}),
    }
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with (
            Stack(Path(folder), durable=True, environment=environment, postgres_options=_OPTIONS) as stack,
            databases.opened(stack) as stored,
            events.opened(stack) as streams,
        ):
            seeder = Seeder(stack.database_urls, Vault([("default", Secret(key))]), SystemClock().now())
            yield Site(stack=stack, seeder=seeder, stored=stored, streams=streams)
