"""nats-server from a wheel, a child of this process: listens on loopback, keeps JetStream in a folder of its own."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Self

from devstack.errors import PortInUse
from devstack.folders import FolderLock, private_folder, remove
from devstack.ports import free_port
from devstack.processes.child import Child
from devstack.processes.leftovers import end_leftovers
from devstack.servers.binaries import nats_server

HOST = "127.0.0.1"
READY = "Server is ready"
START_SECONDS = 30.0
STOP = (signal.SIGTERM, 10.0)
PORT_ATTEMPTS = 5


# A stream reserves its limits when it is created. The server's default, three quarters of the free disk, would refuse
# that on a machine with little left, although the streams of development never fill up.
_MOST_BYTES = 16 * 1024**3


class EmbeddedNats:
    """Runs nats-server. The folder is locked while it runs: one process at a time can use it."""

    def __init__(
        self, folder: Path, *, port: int = 0, sync_always: bool = False, on_line: Callable[[str], None] | None = None
    ) -> None:
        """Prepares a server. `sync_always` writes each message to disk before it is acknowledged."""
        self._folder = folder.absolute()
        self._lock = FolderLock(self._folder)
        self._wanted_port = port
        self.port = port
        self._sync = "always" if sync_always else "2m"
        self._on_line = on_line
        self._child: Child | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def url(self) -> str:
        return f"nats://{HOST}:{self.port}"

    async def start(self) -> None:
        """Returns when clients and JetStream are served. After the first start the port stays the same."""
        assert not self.running
        private_folder(self._folder)
        self._lock.acquire()
        try:
            await end_leftovers(self._folder, (STOP,))
            await self._listen()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        if self._child is not None:
            await self._child.stop(STOP)
        self._lock.release()

    async def kill(self) -> None:
        """Sends SIGKILL: what was not yet written is lost. The folder stays locked."""
        if self._child is not None:
            await self._child.stop()

    async def restart(self) -> None:
        """Stops in order, and starts on the same port with the same store."""
        await self.stop()
        await self.start()

    async def wait(self) -> None:
        """Waits until the server process has ended, by our doing or by itself."""
        assert self._child is not None
        await self._child.wait()

    async def wipe(self) -> None:
        """Deletes every stream, consumer and bucket, as if the disk were lost."""
        assert not self.running
        private_folder(self._folder)
        self._lock.acquire()
        await end_leftovers(self._folder, (STOP,))
        remove(self._folder / "jetstream")
        self._lock.release()

    async def _listen(self) -> None:
        for _ in range(PORT_ATTEMPTS):
            self.port = self.port or free_port(HOST)
            child = await self._launch()
            if await child.says(READY, START_SECONDS):
                return
            if not any("address already in use" in line for line in child.lines):
                raise child.failure("did not start")
            if self._wanted_port:
                break
            self.port = 0
        raise PortInUse("NATS", self.port)

    async def _launch(self) -> Child:
        settings = self._folder / "server.conf"
        settings.write_text(self._settings())
        self._child = await Child.start(
            [str(nats_server()), "--config", str(settings)],
            name="nats",
            folder=self._folder,
            death_signal=signal.SIGTERM,
            on_line=self._on_line,
        )
        return self._child

    def _settings(self) -> str:
        jetstream = {"store_dir": str(self._folder), "sync_interval": self._sync, "max_file_store": _MOST_BYTES}
        # The configuration format is a superset of JSON.
        return json.dumps(
            {"server_name": "postflow", "host": HOST, "port": self.port, "logtime_utc": True, "jetstream": jetstream},
            indent=1,
        )
