"""The backbone of every service's process, wired once: database, outbox, events, operations.

A service's `main` makes a `Backbone`, builds its use cases on it, and gets the `Process` that runs them.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Protocol

from nats.aio.client import Client

from servicekit.bus.connection import close, connect
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.bus.stream_view import StreamView
from servicekit.bus.streams import ConsumerSpec, StreamSpec, ensure_stream
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.messaging.consumer import EventConsumer, Patience
from servicekit.messaging.relay import Relay
from servicekit.messaging.routes import Route
from servicekit.ops import Operations, operations_servicer
from servicekit.ops.operations import Numbers, Redriver
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetters
from servicekit.pg.housekeeping import Housekeeping, Retention
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer, Sizes
from servicekit.rpc.server import Servicers
from servicekit.run import Background, Loop, Process
from servicekit.run.process import Step
from servicekit.run.settings import Secret


class BackboneSettings(Protocol):
    """The settings that every service has."""

    @property
    def listen(self) -> str: ...
    @property
    def database_url(self) -> Secret: ...
    @property
    def database_connections(self) -> int: ...
    @property
    def nats_url(self) -> str: ...
    @property
    def events_stream(self) -> StreamSpec: ...
    @property
    def park_poison_after(self) -> timedelta: ...
    @property
    def grace(self) -> timedelta: ...


class Backbone:
    """The shared parts of one service's process.

    `service` is its name in logs, metrics and connections; `migrations` is the package of its migrations.
    """

    def __init__(
        self,
        service: str,
        settings: BackboneSettings,
        *,
        migrations: str,
        housekeeping_period: timedelta = timedelta(minutes=1),
    ) -> None:
        self.service = service
        self._settings = settings
        self._migrations = migrations
        self._housekeeping_period = housekeeping_period
        self.clock, self.system, self.ids = DatabaseClock(), SystemClock(), Uuid7Source()
        self.database = Database(
            settings.database_url.reveal(), application=service, pool_size=settings.database_connections
        )
        self.ledger = RequestLedger(self.database, self.clock)
        self.dead_letters = DeadLetters(self.database, self.clock, self.ids)
        self.nats = Client()
        self._jetstream = self.nats.jetstream()
        self._relay = Relay(
            database=self.database,
            clock=self.clock,
            publisher=PipelinedPublisher(self.nats),
            stream=StreamView(self._jetstream, settings.events_stream),
            connections=lambda: self.nats.stats["reconnects"],
        )
        self.outbox = Outbox(self.ids, self._relay.offer)

    def consumer(self, spec: ConsumerSpec, routes: Sequence[Route]) -> EventConsumer:
        """Returns the consumer that applies other services' events to this database."""
        return EventConsumer(
            connection=self.nats,
            spec=spec,
            routes=routes,
            database=self.database,
            clock=self.clock,
            dead_letters=self.dead_letters,
            ensure_stream=self.ensure_stream(self._settings.events_stream),
            patience=Patience(give_up_after=self._settings.park_poison_after),
        )

    def ensure_stream(self, stream: StreamSpec) -> Step:
        """Returns the step that creates an absent stream and checks an existing one."""
        return partial(ensure_stream, self._jetstream, stream)

    def operations(
        self,
        *events: EventConsumer,
        numbers: Numbers | None = None,
        redrivers: Mapping[str, Redriver] | None = None,
    ) -> Operations:
        """Returns the operations that operators call on this process; `numbers` are the service's own figures."""
        return Operations(
            service=self.service,
            migrations=self._migrations,
            database=self.database,
            clock=self.clock,
            system=self.system,
            dead_letters=self.dead_letters,
            consumers=[each.applier for each in events],
            redrivers=redrivers,
            numbers=numbers,
        )

    def process(
        self,
        *,
        servicers: Servicers,
        operations: Operations,
        consumers: Sequence[Background],
        loops: Sequence[Background] = (),
        starters: Mapping[str, Step] | None = None,
        closers: Mapping[str, Step] | None = None,
        deadlines: Mapping[str, timedelta | None] | None = None,
        sizes: Mapping[str, Sizes] | None = None,
    ) -> Process:
        """Returns the process. `starters` run once database and stream are up, `closers` before those are closed."""
        return Process(
            name=self.service,
            server=RpcServer(
                listen=self._settings.listen,
                servicers=[*servicers, operations_servicer(operations)],
                ids=self.ids,
                deadlines=deadlines,
                sizes=sizes,
            ),
            starters={
                "database": partial(migrations.check, self.database, self._migrations),
                "nats": partial(connect, self.nats, self._settings.nats_url, name=self.service),
                "events stream": self.ensure_stream(self._settings.events_stream),
                **(starters or {}),
            },
            consumers=consumers,
            loops=[self._relay, self._housekeeping(), *loops],
            closers={
                "outbox relay": self._relay.flush,
                **(closers or {}),
                "nats": partial(close, self.nats),
                "database": self.database.dispose,
            },
            grace=self._settings.grace,
        )

    def _housekeeping(self) -> Loop:
        step = Housekeeping(self.database, self.clock, Retention()).step
        return Loop("housekeeping", step, self._housekeeping_period)
