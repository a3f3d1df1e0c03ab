"""`python -m devstack sandbox --provider NAME`: the fake of one social network alone."""

import asyncio
import signal
import sys
from pathlib import Path

from devstack.errors import PortInUse, StackError
from devstack.networks.catalog import NETWORKS
from devstack.networks.network import Network
from devstack.ports import is_free


def run(provider: str, *, ledger: Path | None, host: str, port: int) -> None:
    network = NETWORKS.get(provider)
    if network is None:
        raise StackError(f"no provider {provider}; there are sandbox, {', '.join(sorted(NETWORKS))}")
    asyncio.run(_serve(network, ledger or Path(f"{provider}.jsonl"), host, port))


async def _serve(kind: type[Network], ledger: Path, host: str, port: int) -> None:
    if not is_free(host, port):
        raise PortInUse(f"fake of {kind.name}", port)
    network = kind(ledger)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await network.start(host, port)
    shown = f"the fake of {network.name} listens on {network.url}, its ledger is {ledger}; {network.furnish()}"
    print(shown, file=sys.stderr, flush=True)
    try:
        await ended.wait()
    finally:
        await network.stop()
