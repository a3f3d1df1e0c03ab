"""`postflow up`: the stack in the foreground until somebody stops it."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from devstack.commands.first_post import commands, grpcurl_command
from devstack.commands.render import Printer
from devstack.layout import WELL_KNOWN_PORTS, given_by_caller
from devstack.stack import Stack
from servicekit.clock import Clock, SystemClock

# Somebody watches: what came of each post is shown, of those that went well, too.
FOLLOWED = {"POSTFLOW_PUBLISHER_OUTCOME_LOG_LEVEL": "DEBUG"}


def run(state_dir: Path, *, reset: bool) -> int:
    clock = SystemClock()
    printer = Printer(sys.stdout, lambda: time_of_day(clock))
    stack = Stack(
        state_dir,
        ports=WELL_KNOWN_PORTS,
        durable=True,
        environment=FOLLOWED | given_by_caller(),
        respawn_servers=True,
        reset=reset,
        on_line=printer.line,
        on_event=printer.event,
    )
    return asyncio.run(until_stopped(stack, printer, lambda: _serve(stack, printer, clock)))


async def until_stopped(stack: Stack, printer: Printer, work: Callable[[], Awaitable[int]]) -> int:
    """The first signal ends `work` in order, the second everything at once."""
    signals = 0
    task = asyncio.current_task()
    assert task is not None

    def on_signal() -> None:
        nonlocal signals
        signals += 1
        if signals == 1:
            printer.say("stopping; once more to stop at once")
            task.cancel()
        else:
            stack.kill_everything()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    with suppress(asyncio.CancelledError):
        return await work()
    return 0 if signals == 1 else 130


async def _serve(stack: Stack, printer: Printer, clock: Clock) -> int:
    began = clock.monotonic()
    printer.say(f"PostFlow starts; its data is in {stack.state.path}")
    async with stack:
        printer.say()
        printer.say(f"PostFlow serves after {clock.monotonic() - began:.1f} s. Ctrl-C stops it.")
        for line in addresses(stack):
            printer.say(f"  {line}")
        printer.say()
        printer.say("The first post:")
        printer.say()
        printer.say(commands(stack.targets, grpcurl_command()))
        printer.say()
        printer.say("What comes of each post is a line below. README.md says what else to try.")
        printer.say()
        await asyncio.Event().wait()
    return 0


def addresses(stack: Stack) -> list[str]:
    services = [
        f"{service:<10} {target:<24} metrics http://{stack.metrics[service]}/metrics"
        for service, target in stack.targets.items()
    ]
    ledger = f"its ledger is {stack.sandbox.path}" if stack.sandbox.path else "not started here"
    passwords = f"passwords in {stack.state.path / 'postgres' / 'passwords.json'}" if stack.postgres else ""
    databases = [_without_password(url) for url in stack.database_urls.values()]
    return [
        *services,
        f"{'sandbox':<10} {stack.sandbox.url:<24} {ledger}",
        f"{'nats':<10} {_without_password(stack.nats_url)}",
        *(f"{'postgres':<10} {url}" for url in databases),
        *([f"{'':<10} {passwords}"] if passwords else []),
    ]


def time_of_day(clock: Clock) -> str:
    return clock.now().isoformat(timespec="milliseconds")[11:23]


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    return parts._replace(netloc=f"{user}{parts.hostname}:{parts.port}").geturl()
