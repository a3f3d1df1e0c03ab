"""The gRPC server of a process: our services with the edge around each method, health and reflection."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from servicekit.faults import NotFound
from servicekit.ids import IdSource
from servicekit.rpc.edge import MAX_SENT_BYTES, MAX_TAKEN_BYTES, Edge, Handler, Method, Sizes
from servicekit.rpc.observe import Seen
from servicekit.rpc.validation import validator
from servicekit.run.addresses import Misconfigured

Servicers = Iterable[tuple[Callable[[Any, Any], None], object]]

DEFAULT_DEADLINE = timedelta(seconds=10)
LIVENESS = "liveness"  # the health service that is SERVING as long as the process responds at all

_REFLECTION_V1ALPHA = reflection.SERVICE_NAME
_REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"  # the same messages under a newer name
_HEALTH_LIMIT = 2.0  # seconds to notify the watchers

_log = logging.getLogger(__name__)


class CannotListen(Misconfigured):
    """The address is in use, or does not belong to this machine."""

    def __init__(self, address: str) -> None:
        super().__init__("listen", "in use, or no address of this machine")
        self.args = (f"cannot listen on {address}: {self.complaint}",)


class RpcServer:
    """Listens on `listen` (host:port, port 0 for any free port) once it is started or its port is read.

    `servicers` are pairs of the generated `add_XServicer_to_server` and the servicer. A unary call without a deadline
    gets `DEFAULT_DEADLINE`, a stream none; `deadlines` overrides this by "package.Service/Method", and `sizes` the
    256 KiB of a message.
    """

    def __init__(
        self,
        *,
        listen: str,
        servicers: Servicers,
        ids: IdSource,
        deadlines: Mapping[str, timedelta | None] | None = None,
        sizes: Mapping[str, Sizes] | None = None,
        max_concurrent_calls: int = 2000,
        max_connection_age: timedelta = timedelta(minutes=5),
    ) -> None:
        self._listen = listen
        self._port = 0
        self._health = _Health()
        self._server = grpc.aio.server(
            options=_options(max_connection_age), maximum_concurrent_rpcs=max_concurrent_calls
        )
        self._edge = Edge(ids)
        methods = _Methods(self._edge, deadlines or {}, sizes or {})
        for add, servicer in servicers:
            add(servicer, methods)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, methods)
        reflected = reflection.aio.ReflectionServicer([*methods.handlers, _REFLECTION_V1ALPHA, _REFLECTION_V1])
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflected, methods)
        methods.handlers[_REFLECTION_V1] = methods.handlers[_REFLECTION_V1ALPHA]
        methods.check_names()
        # Either all services are ready or none: they share their dependencies.
        self._health.names = ("", *(name for name in methods.handlers if not name.startswith("grpc.")))
        for service, handlers in methods.handlers.items():
            self._server.add_registered_method_handlers(service, handlers)

    @property
    def port(self) -> int:
        """Returns the port, also before the start: calls then wait for it."""
        if not self._port:
            try:
                self._port = self._server.add_insecure_port(self._listen)
            except RuntimeError as error:
                raise CannotListen(self._listen) from error
        return self._port

    async def start(self) -> None:
        port = self.port
        await self.set_serving(serving=False)
        # A process that waits for its database is not ready, but a restart would not help.
        await self._health.set(LIVENESS, health_pb2.HealthCheckResponse.SERVING)
        await self._server.start()
        _log.info("listening on port %d", port)

    async def set_serving(self, *, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        # Bounded, because the servicer waits for watchers even if they do not read.
        try:
            async with asyncio.timeout(_HEALTH_LIMIT):
                for name in self._health.names:
                    await self._health.set(name, status)
        except TimeoutError:
            _log.warning("a watcher of the health does not read; some were not notified")

    async def stop(self, grace: float) -> None:
        """Refuses new calls and ends the streams. Calls in flight have `grace` seconds, then they are cancelled."""
        async with asyncio.TaskGroup() as group:
            # It must refuse new calls first, or the readers of the streams would reconnect at once.
            stopping = group.create_task(self._server.stop(grace))
            await asyncio.sleep(0)
            self._edge.end_streams()
            await stopping


class _Health(health.aio.HealthServicer):  # type: ignore[misc]
    """Names the known services, where the library answers NOT_FOUND without a text."""

    names: Sequence[str] = ("",)

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Any) -> health_pb2.HealthCheckResponse:
        if request.service not in {*self.names, LIVENESS}:
            known = ", ".join(name for name in (*self.names, LIVENESS) if name)
            raise NotFound("SERVICE_NOT_FOUND", f"no such service; known are {known}, and the empty name for all")
        return await super().Check(request, context)


class _Methods:
    """Stands in for a server in the generated code: keeps the handlers, each with the edge around it."""

    def __init__(self, edge: Edge, deadlines: Mapping[str, timedelta | None], sizes: Mapping[str, Sizes]) -> None:
        self._edge = edge
        self._deadlines = deadlines
        self._sizes = sizes
        self.handlers: dict[str, dict[str, Handler]] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Ignores the handlers, which are registered a second time for older servers."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        self.handlers[service] = {
            name: self._edge.guard(self._method(service, name, handler), handler) for name, handler in handlers.items()
        }

    def check_names(self) -> None:
        known = {f"{service}/{name}" for service, handlers in self.handlers.items() for name in handlers}
        for what, given in (("deadlines", self._deadlines.keys()), ("sizes", self._sizes.keys())):
            if unknown := sorted(given - known):
                raise ValueError(f"{what} for methods that do not exist: {', '.join(unknown)}")

    def _method(self, service: str, name: str, handler: Handler) -> Method:
        is_own = not service.startswith("grpc.")
        decode: Any = handler.request_deserializer  # the FromString of the request's type
        encode: Any = handler.response_serializer
        request_type: Any = decode.__self__.DESCRIPTOR
        return Method(
            seen=Seen(service, name, is_own=is_own),
            decode=decode,
            encode=encode,
            validate=validator(request_type),
            has_organization="organization_id" in request_type.fields_by_name,
            default_deadline=self._deadlines.get(
                f"{service}/{name}", DEFAULT_DEADLINE if is_own and handler.unary_unary else None
            ),
            sizes=self._sizes.get(f"{service}/{name}", Sizes()),
        )


def _options(max_connection_age: timedelta) -> list[tuple[str, int]]:
    age = int(max_connection_age.total_seconds() * 1000)
    return [
        ("grpc.max_receive_message_length", MAX_TAKEN_BYTES),
        ("grpc.max_send_message_length", MAX_SENT_BYTES),
        # A second process on the same port would silently take half of the calls.
        ("grpc.so_reuseport", 0),
        # Makes clients reconnect now and then, to find newer servers. A watch ends after twice the age.
        ("grpc.max_connection_age_ms", age),
        ("grpc.max_connection_age_grace_ms", age),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        # Less than the 30 s between the pings of our own channels, which would otherwise be disconnected.
        ("grpc.http2.min_ping_interval_without_data_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
