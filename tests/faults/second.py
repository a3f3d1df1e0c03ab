"""A second publisher on the same database and stream."""

import asyncio
import signal
import sysconfig
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from devstack.layout import console_script
from devstack.ports import free_port
from devstack.processes.child import Child
from devstack.stack import START_SECONDS, Stack


@asynccontextmanager
async def second_publisher(stack: Stack, environment: Mapping[str, str] | None = None) -> AsyncIterator[Child]:
    addresses = {
        "POSTFLOW_PUBLISHER_LISTEN": f"127.0.0.1:{free_port()}",
        "POSTFLOW_PUBLISHER_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
    }
    command = [str(console_script("publisher", Path(sysconfig.get_path("scripts"))))]
    known = stack._environment("publisher")
    child = await Child.start(command, name="second", environment={**known, **addresses, **(environment or {})})
    try:
        assert await child.says('"serving"', START_SECONDS), list(child.lines)
        yield child
    finally:
        await asyncio.shield(child.stop((signal.SIGTERM, 20)))
