"""One small value in a bucket of NATS, which the processes of a service change by compare and swap."""

from dataclasses import dataclass

from nats.aio.client import Client
from nats.js.errors import BucketNotFoundError, KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue

_KEY = "value"
_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Registered:
    """The value, if there is one, and the revision that a write of the next one names."""

    value: bytes | None
    revision: int


class Register:
    """Creates its bucket whenever it is absent: a server that has lost everything gets it again."""

    def __init__(self, connection: Client, bucket: str, *, replicas: int = 1) -> None:
        self._js = connection.jetstream(timeout=_PATIENCE)
        self._bucket = bucket
        self._replicas = replicas

    async def read(self) -> Registered:
        try:
            found = await (await self._open()).get(_KEY)
        except KeyNotFoundError as absent:
            # One that a person has deleted has left a mark of that, which the next write follows.
            return Registered(None, absent.entry.revision if absent.entry else 0)
        return Registered(found.value, found.revision or 0)

    async def write(self, value: bytes, *, after: int) -> bool:
        """Writes the value that follows this revision. Returns False if another process was faster."""
        try:
            await (await self._open()).update(_KEY, value, after)
        except KeyWrongLastSequenceError:
            return False
        return True

    async def _open(self) -> KeyValue:
        try:
            return await self._js.key_value(self._bucket)
        except BucketNotFoundError:
            # As it is without another replica's: equal settings are no conflict. Not direct, because only the leader of
            # the stream surely has the newest value.
            return await self._js.create_key_value(bucket=self._bucket, replicas=self._replicas, history=1)
