"""The whole stack on one machine: servers, migrations, sandbox provider, the four services."""

import asyncio
import base64
import os
import secrets
import signal
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from devstack.errors import StackError, WrongSetting
from devstack.folders import StateFolder, write_private
from devstack.health import POLL_SECONDS, listening, serving
from devstack.layout import FREE_PORTS, SERVICES, Layout, Ports, Replica, console_script, inherited, settings_only
from devstack.ports import split
from devstack.processes.keeper import Keeper
from devstack.running import Running, forget
from devstack.sandbox.client import SandboxClient
from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres, Mode

SANDBOX = "sandbox"
START_SECONDS = 60.0
DRAIN_SECONDS = 30.0
"""Longer than the 20 s for which a service lets what is in flight finish."""
SANDBOX_STOP_SECONDS = 5.0
STOPPING = {"postgres": "stops; first it writes to disk what it has in memory", "nats": "stops"}


class Stack:
    """`async with Stack(folder) as stack:` returns when every service is SERVING, and stops everything at the end.

    The same folder again is the same data. Lines of the processes and what happens to them go to `on_line(name, line)`
    and `on_event(name, text)`.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        ports: Ports = FREE_PORTS,
        durable: bool = False,
        postgres_options: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        services: Sequence[str] = SERVICES,
        replicas: Mapping[str, int] | None = None,
        replica_scripts: Path | None = None,
        without: Sequence[str] = (),
        respawn: bool = True,
        respawn_servers: bool = False,
        reset: bool = False,
        on_line: Callable[[str, str], None] | None = None,
        on_event: Callable[[str, str], None] | None = None,
    ) -> None:
        """Prepares a stack of `services`; starts nothing yet.

        `environment` is for the services, and names servers to use instead of the embedded ones. `postgres_options`
        are further settings of the embedded PostgreSQL. `replicas` says how many processes a service has, if not one;
        the second is called `queue-2`; `replica_scripts` is the folder of their programs, if of another release. A
        service named by `without` gets its database and its address, and somebody else starts it. `respawn` restarts
        services that end by themselves, `respawn_servers` PostgreSQL and NATS; `reset` begins with empty data.
        """
        self.state = StateFolder(state_dir)
        self._layout = Layout(ports, environment or {})
        self._services = tuple(services)
        self._started = tuple(service for service in services if service not in without)
        self._replicas = tuple(
            Replica.of(service, number)
            for service in self._started
            for number in range(2, (replicas or {}).get(service, 1) + 1)
        )
        self._replica_scripts = replica_scripts
        self._respawn = respawn
        self._respawn_servers = respawn_servers
        self._reset = reset
        self._on_line = on_line or _ignore
        self._on_event = on_event or _ignore
        self._stopping = False
        self._turns = {"postgres": asyncio.Lock(), "nats": asyncio.Lock()}
        self._exits = AsyncExitStack()
        self._keepers: dict[str, Keeper] = {}
        self._database_urls = dict(self._layout.external_databases)
        self.postgres: EmbeddedPostgres | None = None
        if self._own_databases:
            self.postgres = EmbeddedPostgres(
                self.state.path / "postgres",
                port=ports.postgres,
                mode=Mode.DURABLE if durable else Mode.FAST,
                options=postgres_options,
                on_line=partial(self._on_line, "postgres"),
            )
        self.nats: EmbeddedNats | None = None
        if not self._layout.external_nats:
            self.nats = EmbeddedNats(self.state.path / "nats", port=ports.nats, on_line=partial(self._on_line, "nats"))
        ledger = None if self._layout.external_sandbox else self.state.path / "sandbox.jsonl"
        self.sandbox = SandboxClient(self._layout.sandbox_url, ledger)

    @property
    def targets(self) -> Mapping[str, str]:
        """gRPC address of each service."""
        return {service: self._layout.targets[service] for service in self._services}

    @property
    def metrics(self) -> Mapping[str, str]:
        """Address of each service's /metrics."""
        return {service: self._layout.metrics[service] for service in self._services}

    @property
    def processes(self) -> Sequence[str]:
        """Names of the services' processes, further replicas included."""
        return (*self._started, *(replica.name for replica in self._replicas))

    def address(self, process: str) -> str:
        """Returns the gRPC address of a process, which may be a further replica."""
        replica = next((each for each in self._replicas if each.name == process), None)
        return replica.listen if replica else self._layout.local(process)

    @property
    def mails(self) -> Path:
        """The folder of the mails that Publisher sends, unless its settings name a server."""
        return self.state.path / "mail"

    @property
    def database_urls(self) -> Mapping[str, str]:
        return self._database_urls

    @property
    def nats_url(self) -> str:
        url = self.nats.url if self.nats else self._layout.external_nats
        assert url is not None
        return url

    async def __aenter__(self) -> Self:
        try:
            async with AsyncExitStack() as exits:
                await self._start(exits)
                self._exits = exits.pop_all()
        except ExceptionGroup as group:
            raise _actionable(group) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        try:
            await self._exits.aclose()
        except ExceptionGroup as group:
            raise _actionable(group) from None

    async def wait_serving(self, *names: str, within: float = START_SECONDS) -> None:
        """Waits until each process (all, if none is named) is SERVING; StackError for one that has ended for good."""
        names = names or tuple(self._keepers)
        try:
            async with asyncio.timeout(within), asyncio.TaskGroup() as group:
                for name in names:
                    group.create_task(self._wait_one(name))
        except ExceptionGroup as failures:
            raise _actionable(failures) from None
        except TimeoutError:
            raise StackError(f"not SERVING within {within:g} s: {', '.join(names)}{self._last_lines()}") from None

    def output(self, name: str) -> list[str]:
        """Returns the last lines of a service or of the sandbox, over all its restarts."""
        return list(self._keepers[name].lines)

    def pid(self, name: str) -> int:
        return self._keepers[name].pid

    def running(self, name: str) -> bool:
        return self._keepers[name].running

    def starts(self, name: str) -> int:
        """Returns how often the process was started."""
        return self._keepers[name].starts

    async def kill(self, name: str, *, respawn: bool | None = None) -> None:
        """Sends SIGKILL to a service or the sandbox. `respawn` overrules whether the stack restarts it."""
        await self._keepers[name].kill(respawn=respawn)

    async def stop(self, name: str) -> None:
        """Stops a process as an operator does: it drains."""
        await self._keepers[name].stop(DRAIN_SECONDS)

    async def start(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        """Starts a process with these variables in addition, and waits until it serves."""
        self._keepers[name].start(environment)
        await self.wait_serving(name)

    async def restart(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        await self.stop(name)
        await self.start(name, environment)

    def kill_everything(self) -> None:
        """Ends all processes at once: nothing drains, and PostgreSQL recovers at its next start."""
        for keeper in self._keepers.values():
            keeper.kill_now()
        if self.nats is not None and self.nats.running:
            os.kill(self.nats.pid, signal.SIGKILL)
        if self.postgres is not None and self.postgres.running:
            os.kill(self.postgres.pid, signal.SIGQUIT)

    # starting, in the order in which things need each other; stopping is the reverse

    async def _start(self, exits: AsyncExitStack) -> None:
        # Before the ports: on a second start of the same stack they are taken by the stack itself.
        self.state.check_unused()
        self._layout.check_ports(self._started)
        self.state.open()
        exits.callback(self.state.close)
        if self._reset:
            await self._wipe()
        group = await exits.enter_async_context(asyncio.TaskGroup())
        if self.postgres is not None:
            exits.push_async_callback(self._stop_server, "postgres", self.postgres)
        if self.nats is not None:
            exits.push_async_callback(self._stop_server, "nats", self.nats)
        self._add_keepers(group)
        exits.push_async_callback(self._close_sandbox)
        exits.push_async_callback(self._close_services)
        await self._start_servers()
        if self._respawn_servers:
            self._guard(group)
        exits.callback(self._begin_stopping)
        self._record().write(self.state.path)
        exits.callback(forget, self.state.path)
        for service in self._started:
            self._keepers[service].start(self._environment(service))
        for replica in self._replicas:
            self._keepers[replica.name].start(self._environment(replica.service) | replica.addresses)
        await self.wait_serving()

    async def _start_servers(self) -> None:
        async with asyncio.TaskGroup() as starting:
            starting.create_task(self._start_postgres())
            if self.nats is not None:
                starting.create_task(self._start_nats(self.nats))
            if SANDBOX in self._keepers:
                self._keepers[SANDBOX].start()

    async def _start_nats(self, nats: EmbeddedNats) -> None:
        await nats.start()
        self._on_line("nats", f"NATS is ready on {nats.url}")

    async def _start_postgres(self) -> None:
        if self.postgres is not None:
            self._on_line("postgres", "starts" if self.postgres.has_data else "creates its data folder and starts")
            await self.postgres.start()
            self._database_urls |= await self.postgres.provide(self._own_databases)
            self._on_line("postgres", f"PostgreSQL is ready on port {self.postgres.port}")
        from servicekit.pg import migrations

        # One after the other: Alembic keeps its context in module variables.
        for service in self._services:
            with self._explained(service):
                package = f"{service}_service.adapters.postgres.migrations"
                await migrations.upgrade(self._database_urls[service], package)
        self._on_line("postgres", "the databases are migrated")

    @contextmanager
    def _explained(self, service: str) -> Iterator[None]:
        """Reports a problem with a database that the caller named in one line; with an embedded one it is a defect."""
        from servicekit.pg import errors  # its import teaches `misconfiguration` what PostgreSQL's refusals mean
        from servicekit.run.addresses import misconfiguration, without_password

        try:
            yield
        except Exception as error:
            wrong = misconfiguration(error)
            if service in self._own_databases or not (wrong or errors.is_transient(error)):
                raise
            place = f"POSTFLOW_{service.upper()}_DATABASE_URL: {without_password(self._database_urls[service])}"
            raise WrongSetting(f"{place}: {wrong.complaint if wrong else str(error) or type(error).__name__}") from None

    def _add_keepers(self, group: asyncio.TaskGroup) -> None:
        scripts = Path(sysconfig.get_path("scripts"))
        commands = {service: [str(console_script(service, scripts))] for service in self._started}
        for replica in self._replicas:
            commands[replica.name] = [str(console_script(replica.service, self._replica_scripts or scripts))]
        if not self._layout.external_sandbox:
            ledger = self.sandbox.path
            assert ledger is not None
            commands[SANDBOX] = [sys.executable, "-m", "devstack.sandbox.main", "--ledger", str(ledger)]
            host, port = split(self._layout.sandbox_listen)
            commands[SANDBOX] += ["--host", host, "--port", str(port)]
        for name, command in commands.items():
            keeper = Keeper(
                name,
                command,
                inherited(),
                respawn=self._respawn,
                on_line=partial(self._on_line, name),
                on_event=partial(self._on_event, name),
            )
            self._keepers[name] = keeper
            group.create_task(keeper.run(), name=name)

    def _environment(self, service: str) -> dict[str, str]:
        return self._layout.environment(
            service, self._database_urls[service], self.nats_url, self._credentials_keys(), str(self.mails)
        )

    def _record(self) -> Running:
        return Running(
            pid=os.getpid(),
            targets=self.targets,
            nats_url=self.nats_url,
            database_urls=self.database_urls,
            settings={service: settings_only(self._environment(service)) for service in self._services},
        )

    def _credentials_keys(self) -> str:
        """Returns the path of a file that is created once: what its key has sealed must stay readable."""
        file = self.state.path / "credentials.keys"
        if not file.exists():
            # Earlier releases had a single key.
            former = self.state.path / "credentials.key"
            key = former.read_text() if former.exists() else base64.b64encode(secrets.token_bytes(32)).decode()
            write_private(file, f"dev {key}\n")
        return str(file)

    @property
    def _own_databases(self) -> list[str]:
        return [service for service in self._services if service not in self._layout.external_databases]

    async def _wait_one(self, name: str) -> None:
        keeper = self._keepers[name]
        while not await self._serves(name):
            if keeper.given_up:
                raise keeper.failure()
            await asyncio.sleep(POLL_SECONDS)

    async def _serves(self, name: str) -> bool:
        if name == SANDBOX:
            return await listening(urlsplit(self._layout.sandbox_url).netloc)
        return await serving(self.address(name))

    async def _wipe(self) -> None:
        if self.postgres is not None:
            await self.postgres.wipe()
        if self.nats is not None:
            await self.nats.wipe()
        self.state.wipe()

    def _guard(self, group: asyncio.TaskGroup) -> None:
        if self.postgres is not None:
            group.create_task(self._keep_server("postgres", self.postgres))
        if self.nats is not None:
            group.create_task(self._keep_server("nats", self.nats))

    async def _keep_server(self, name: str, server: EmbeddedPostgres | EmbeddedNats) -> None:
        while True:
            await server.wait()
            async with self._turns[name]:
                if self._stopping:
                    return
                self._on_event(name, "ended by itself; starts again")
                try:
                    await server.start()
                except StackError:
                    if not self._stopping:
                        raise

    async def _stop_server(self, name: str, server: EmbeddedPostgres | EmbeddedNats) -> None:
        # A restart that has begun ends first: if it were stopped half-way, the start would count as failed.
        async with self._turns[name]:
            self._on_line(name, STOPPING[name])
            await server.stop()

    def _begin_stopping(self) -> None:
        self._stopping = True

    async def _close_services(self) -> None:
        async with asyncio.TaskGroup() as closing:
            for name in self.processes:
                closing.create_task(self._keepers[name].close(DRAIN_SECONDS))

    async def _close_sandbox(self) -> None:
        if SANDBOX in self._keepers:
            await self._keepers[SANDBOX].close(SANDBOX_STOP_SECONDS)

    def _last_lines(self) -> str:
        shown = [f"\n  {name}: {keeper.lines[-1]}" for name, keeper in self._keepers.items() if keeper.lines]
        return "; the last line of each process:" + "".join(shown) if shown else ""


def _actionable(group: ExceptionGroup[Exception]) -> Exception:
    """Returns the first error that a person can act on; without one, the group as it is."""
    for error in group.exceptions:
        found = _actionable(error) if isinstance(error, ExceptionGroup) else error
        if isinstance(found, StackError):
            return found
    return group


def _ignore(_name: str, _text: str) -> None:
    pass
