"""The sandbox provider as a process of its own: `python -m devstack.sandbox.main --ledger FILE`."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from devstack.errors import PortInUse, StackError
from devstack.ports import is_free
from devstack.sandbox.provider import HOST, Sandbox

DEFAULT_PORT = 50060


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default=HOST, help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes any free one (default: %(default)s)")
    parser.add_argument("--ledger", type=Path, help="the file that remembers (default: sandbox.jsonl)")


def run(options: argparse.Namespace) -> None:
    import uvloop

    uvloop.run(_serve(options.ledger or Path("sandbox.jsonl"), options.host, options.port))


async def _serve(ledger: Path, host: str, port: int) -> None:
    if not is_free(host, port):
        raise PortInUse("sandbox provider", port)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    sandbox = Sandbox(ledger)
    await sandbox.start(host, port)
    print(f"the sandbox provider listens on {sandbox.url}, its ledger is {ledger}", file=sys.stderr, flush=True)
    try:
        await ended.wait()
    finally:
        await sandbox.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m devstack.sandbox.main", description=__doc__)
    add_arguments(parser)
    try:
        run(parser.parse_args())
    except StackError as error:
        sys.exit(f"{parser.prog}: {error}")


if __name__ == "__main__":
    main()
