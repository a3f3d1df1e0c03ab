"""PostgreSQL 18 from a wheel, a child of this process: TCP on loopback, scram passwords, a folder of its own."""

import asyncio
import json
import os
import secrets
import signal
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from devstack.errors import PortInUse, StackError
from devstack.folders import FolderLock, private_folder, remove, write_private
from devstack.ports import free_port
from devstack.processes.child import Child
from devstack.processes.leftovers import end_leftovers
from devstack.servers.binaries import postgres_programs, unprivileged_uid

if TYPE_CHECKING:
    import asyncpg

HOST = "127.0.0.1"
SUPERUSER = "postgres"
ROLE_PREFIX = "postflow_"
MAJOR = "18"
INITDB_SECONDS = 60.0
START_SECONDS = 60.0
LEAVE_SECONDS = 5.0
POLL_SECONDS = 0.005
PORT_ATTEMPTS = 5
FAST_SHUTDOWN = signal.SIGINT
IMMEDIATE_SHUTDOWN = signal.SIGQUIT


class Mode(StrEnum):
    DURABLE = "durable"
    """Survives anything, as in production: for `make run` and for benchmarks."""
    FAST = "fast"
    """Loses data when the machine crashes, but not when the server does: for tests."""


COMMON_OPTIONS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # Expected refusals (a lost race, a unique violation) are ERRORs of a statement: the caller deals with them.
    "log_min_messages": "log",
    "log_line_prefix": "",
    # Saves three worker processes; reads here come from memory. Each of 200 backends has room for 64 reads in flight in
    # shared memory, of which it then has one: 2 MB less.
    "io_method": "sync",
    "io_max_concurrency": "4",
    "max_wal_size": "4GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    # Shared memory for SERIALIZABLE, which nobody uses: 2 MB less.
    "max_pred_locks_per_transaction": "10",
}
OPTIONS = {
    Mode.DURABLE: {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "256MB"},
    Mode.FAST: {
        "fsync": "off",
        "synchronous_commit": "on",
        "full_page_writes": "off",
        "shared_buffers": "128MB",
        "scram_iterations": "1",
        # Statistics stay as a test has made them: a plan must not change because a minute has passed.
        "autovacuum": "off",
    },
}


class EmbeddedPostgres:
    """Runs PostgreSQL. The folder is locked while it runs: one process at a time can use it."""

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        mode: Mode = Mode.DURABLE,
        options: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        """Prepares a server; `options` adds settings of the server, or replaces them."""
        self._folder = folder.absolute()
        self._cluster = self._folder / "cluster"
        self._data = self._cluster / "data"
        self._lock = FolderLock(self._folder)
        self._wanted_port = port
        self.port = port
        self._mode = mode
        self._options = options or {}
        self._on_line = on_line
        self._uid = unprivileged_uid()
        self._programs: Path | None = None
        self._child: Child | None = None
        self._passwords: dict[str, str] = {}
        self._connection: asyncpg.Connection | None = None
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    @property
    def has_data(self) -> bool:
        """False before the first start, which creates the cluster and takes some seconds."""
        return self._data.exists()

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def url(self, database: str = SUPERUSER, role: str = SUPERUSER) -> str:
        return f"postgresql://{role}:{self._passwords[role]}@{HOST}:{self.port}/{database}"

    async def start(self) -> None:
        """Creates the cluster if absent, takes over from a killed run, and returns when connections are accepted."""
        assert not self.running
        private_folder(self._folder)
        self._lock.acquire()
        try:
            await self._prepare()
            await self._listen()
        except BaseException:
            await self.stop()
            raise

    async def stop(self, within: float = 20.0) -> None:
        """Ends sessions and writes everything to disk. A server that needs longer is stopped as by `kill`."""
        await self._end((FAST_SHUTDOWN, within), (IMMEDIATE_SHUTDOWN, 10.0))
        self._lock.release()

    async def kill(self) -> None:
        """Stops as in a crash: nothing is written, the next start recovers from the log. The folder stays locked."""
        await self._end((IMMEDIATE_SHUTDOWN, 10.0))

    async def restart(self) -> None:
        """Stops in order, and starts on the same port."""
        await self._end((FAST_SHUTDOWN, 20.0), (IMMEDIATE_SHUTDOWN, 10.0))
        await self.start()

    async def wait(self) -> None:
        """Waits until the server process has ended, by our doing or by itself."""
        assert self._child is not None
        await self._child.wait()

    async def wipe(self) -> None:
        """Deletes the cluster with all data, and the passwords."""
        assert not self.running
        private_folder(self._folder)
        self._lock.acquire()
        await self._evict()
        for entry in (self._cluster, self._passwords_file):
            remove(entry)
        self._passwords.clear()
        self._lock.release()

    async def provide(self, names: Iterable[str]) -> dict[str, str]:
        """Creates the databases that are missing, each with a role that alone may connect to it; returns their URLs."""
        names = list(names)
        for name in names:
            await self._provide_role(ROLE_PREFIX + name)
        databases = {record["datname"] for record in await self._fetch("select datname from pg_database")}
        for name in names:
            if name not in databases:
                await self.create_database(name, owner=ROLE_PREFIX + name)
        await self._leave()
        return {name: self.url(name, ROLE_PREFIX + name) for name in names}

    async def create_database(self, name: str, *, template: str | None = None, owner: str = SUPERUSER) -> str:
        """Creates a database and returns its owner's URL. Nobody may be connected to the template."""
        source = f" template {_quoted(template)}" if template else ""
        # The default writes every page to the log first, which needs 9 MB of shared buffers; without fsync it takes 16
        # ms, not 10.
        owned = f"owner {_quoted(owner)}{source} strategy file_copy"
        await self._execute(f"create database {_quoted(name)} {owned}")
        await self._execute(f"revoke all on database {_quoted(name)} from public")
        return self.url(name, owner)

    async def drop_database(self, name: str) -> None:
        """Drops a database if it exists, and ends its sessions."""
        await self._execute(f"drop database if exists {_quoted(name)} with (force)")

    # the server process

    async def _prepare(self) -> None:
        self._programs = await asyncio.to_thread(postgres_programs, self._uid)
        self._load_passwords()
        await self._evict()
        if not self._data.exists():
            self._own_cluster_folder()
            await self._initialise()
            return
        version = (self._data / "PG_VERSION").read_text().strip()
        if version != MAJOR:
            raise StackError(
                f"{self._data} needs PostgreSQL {version}, not {MAJOR}: dump it with that one, or wipe it with --reset"
            )

    async def _listen(self) -> None:
        for _ in range(PORT_ATTEMPTS):
            self.port = self.port or free_port(HOST)
            child = await self._launch()
            if await self._became_ready(child):
                return
            if not any("could not create any TCP/IP sockets" in line for line in child.lines):
                raise child.failure("did not start")
            if self._wanted_port:
                break
            self.port = 0
        raise PortInUse("PostgreSQL", self.port)

    async def _launch(self) -> Child:
        options = {**COMMON_OPTIONS, **OPTIONS[self._mode], **self._options, "port": str(self.port)}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        # If we are killed, a test wants it gone at once; elsewhere it should end in order.
        death_signal = IMMEDIATE_SHUTDOWN if self._mode is Mode.FAST else FAST_SHUTDOWN
        self._child = await self._run(
            "postgres", "-D", self._path("data"), *settings, death_signal=death_signal, on_line=self._on_line
        )
        return self._child

    async def _became_ready(self, child: Child) -> bool:
        async with asyncio.timeout(START_SECONDS):
            while child.running:
                if self._says_ready(child.pid):
                    return True
                await asyncio.sleep(POLL_SECONDS)
        await child.wait()
        return False

    def _says_ready(self, pid: int) -> bool:
        try:
            lines = self._postmaster_file.read_text().split("\n")
        except OSError:
            return False
        return lines[0].strip() == str(pid) and len(lines) > 7 and lines[7].strip() == "ready"

    async def _end(self, *steps: tuple[signal.Signals, float]) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
        if self._child is not None:
            await self._child.stop(*steps)

    async def _evict(self) -> None:
        """Ends processes that still use our data, then removes the server's lock file.

        That file would refuse a start once its process id belongs to another program.
        """
        await end_leftovers(self._cluster, ((FAST_SHUTDOWN, 10.0), (IMMEDIATE_SHUTDOWN, 10.0)))
        self._postmaster_file.unlink(missing_ok=True)

    @property
    def _postmaster_file(self) -> Path:
        return self._data / "postmaster.pid"

    # making the cluster

    async def _initialise(self) -> None:
        """Runs initdb in a folder that gets its final name when it is complete."""
        password_file = self._cluster / "password"
        write_private(password_file, self._passwords[SUPERUSER])
        if self._uid is not None:
            os.chown(password_file, self._uid, -1)
        remove(self._cluster / "new")
        safe = [] if self._mode is Mode.DURABLE else ["--no-sync", "--no-data-checksums"]
        initdb = await self._run(
            "initdb",
            *("-D", self._path("new"), "-U", SUPERUSER, "--auth=scram-sha-256", f"--pwfile={self._path('password')}"),
            *("--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions"),
            *safe,
        )
        try:
            code = await initdb.wait(INITDB_SECONDS)
        except BaseException:
            os.killpg(initdb.pid, signal.SIGKILL)
            await initdb.wait()
            raise
        finally:
            password_file.unlink()
        if code != 0:
            raise initdb.failure("failed")
        (self._cluster / "new").rename(self._data)

    def _own_cluster_folder(self) -> None:
        self._cluster.mkdir(mode=0o700, exist_ok=True)
        if self._uid is not None:
            os.chown(self._cluster, self._uid, -1)

    async def _run(
        self,
        program: str,
        *arguments: str,
        death_signal: signal.Signals = signal.SIGKILL,
        on_line: Callable[[str], None] | None = None,
    ) -> Child:
        assert self._programs is not None
        environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
        return await Child.start(
            [str(self._programs / program), *arguments],
            name=program,
            environment=environment,
            uid=self._uid,
            folder=self._cluster,
            death_signal=death_signal,
            on_line=on_line,
        )

    def _path(self, entry: str) -> str:
        return f"{{folder}}/{entry}"

    # passwords

    @property
    def _passwords_file(self) -> Path:
        return self._folder / "passwords.json"

    def _load_passwords(self) -> None:
        if self._passwords_file.exists():
            self._passwords = json.loads(self._passwords_file.read_text())
        elif self._data.exists():
            raise StackError(
                f"{self._passwords_file} is missing, but there is data: put it back, or wipe the data with --reset"
            )
        else:
            self._add_password(SUPERUSER)

    def _add_password(self, role: str) -> None:
        """Writes the password to disk before the server knows it: a crash in between locks nobody out."""
        self._passwords = self._passwords | {role: secrets.token_urlsafe(24)}
        write_private(self._passwords_file, json.dumps(self._passwords, indent=1))

    # statements of the superuser

    async def _provide_role(self, role: str) -> None:
        known = bool(await self._fetch("select from pg_roles where rolname = $1", role))
        if known and role in self._passwords:
            return
        if role not in self._passwords:
            self._add_password(role)
        verb = "alter" if known else "create"
        await self._execute(f"{verb} role {_quoted(role)} login password '{self._passwords[role]}'")
        if not known:
            await self._execute(f"revoke connect on database {_quoted(SUPERUSER)}, template1 from public")

    async def _leave(self) -> None:
        """Ends our session, which a running stack needs no more."""
        async with self._turn:
            if self._connection is not None:
                await self._connection.close(timeout=LEAVE_SECONDS)
                self._connection = None

    async def _execute(self, statement: str) -> None:
        async with self._turn:
            await (await self._session()).execute(statement)

    async def _fetch(self, query: str, *arguments: object) -> "list[asyncpg.Record]":
        async with self._turn:
            return await (await self._session()).fetch(query, *arguments)

    async def _session(self) -> "asyncpg.Connection":
        import asyncpg  # a tenth of a second, spent while the server starts

        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(self.url())
        return self._connection


def _quoted(identifier: str) -> str:
    escaped = identifier.replace('"', '""')
    return f'"{escaped}"'
