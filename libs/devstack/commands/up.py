"""`make run`: the stack in the foreground until somebody stops it."""

import asyncio
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from devstack import running
from devstack.commands.first_post import commands, grpcurl_command, shortest
from devstack.commands.render import Printer
from devstack.errors import FolderInUse, StackError
from devstack.layout import WELL_KNOWN_PORTS, given_by_caller
from devstack.stack import Stack
from servicekit.clock import Clock, SystemClock
from servicekit.run.addresses import without_password

# A person watches, so the outcome of every post is shown, also of those that went well.
FOLLOWED = {"POSTFLOW_PUBLISHER_OUTCOME_LOG_LEVEL": "DEBUG"}

HINTS = """What happens to each post is a line below. In another terminal, in this folder:

  make demo                   sends one post through a stack of its own, and prints each state
  make streams                streams, consumers, their lag, the next messages
  make psql SERVICE=queue     a service's database
  make mail                   the mails that people would get

README.md explains the words and the calls, docs/debugging.md how to find out what happens."""


def run(state_dir: Path, *, reset: bool, without: Sequence[str] = ()) -> int:
    clock = SystemClock()
    printer = Printer(sys.stdout, lambda: time_of_day(clock))
    stack = Stack(
        state_dir,
        ports=WELL_KNOWN_PORTS,
        durable=True,
        environment=FOLLOWED | given_by_caller(),
        respawn_servers=True,
        reset=reset,
        without=without,
        on_line=printer.line,
        on_event=printer.event,
    )
    try:
        stack.state.check_unused()
    except FolderInUse:
        raise _runs_already(state_dir) from None
    return asyncio.run(until_stopped(stack, printer, lambda: _serve(stack, printer, clock, without)))


def _runs_already(folder: Path) -> StackError:
    try:
        other = running.find(folder)
    except StackError as error:
        return error
    served = "".join(f"\n  {service:<10} {target}" for service, target in other.targets.items())
    return FolderInUse(
        f"the stack of {folder} runs already, as process {other.pid}:{served}\n"
        f"Stop it with Ctrl-C in its terminal, or by `kill {other.pid}`; or choose another folder by --state-dir"
    )


async def until_stopped(stack: Stack, printer: Printer, work: Callable[[], Awaitable[int]]) -> int:
    """Runs `work`. The first signal ends it in order, the second ends everything at once."""
    signals = 0
    task = asyncio.current_task()
    assert task is not None

    def on_signal() -> None:
        nonlocal signals
        signals += 1
        if signals == 1:
            printer.say("stopping, once what is in flight has ended; once more to stop at once")
            task.cancel()
        else:
            stack.kill_everything()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    with suppress(asyncio.CancelledError):
        return await work()
    return 0 if signals == 1 else 130


async def _serve(stack: Stack, printer: Printer, clock: Clock, without: Sequence[str]) -> int:
    began = clock.monotonic()
    printer.say(f"PostFlow starts; its data is in {stack.state.path}")
    async with stack:
        printer.say()
        printer.say(f"PostFlow serves after {clock.monotonic() - began:.1f} s. Ctrl-C stops it.")
        for line in addresses(stack, without):
            printer.say(f"  {line}")
        printer.say()
        printer.say("The first post:")
        printer.say()
        printer.say(commands(stack.targets, grpcurl_command()))
        printer.say()
        for service in without:
            printer.say(_left_out(service, stack.state.path))
        printer.say(HINTS)
        printer.say()
        await asyncio.Event().wait()
    return 0


def _left_out(service: str, folder: Path) -> str:
    python = shortest(Path(sys.executable))
    env = f"{python} -m devstack env --state-dir {shlex.quote(shortest(folder))} {service}"
    return f"""{service} is left to you. For example, in another terminal, in this folder:

  (set -a; eval "$({env})"; exec {python} -m pdb -m {service}_service.main)
"""


def addresses(stack: Stack, without: Sequence[str] = ()) -> list[str]:
    services = [
        f"{service:<10} {target:<24} metrics http://{stack.metrics[service]}/metrics"
        + (", left to you" if service in without else "")
        for service, target in stack.targets.items()
    ]
    ledger = f"its ledger is {stack.sandbox.path}" if stack.sandbox.path else "not started here"
    passwords = f"passwords in {stack.state.path / 'postgres' / 'passwords.json'}" if stack.postgres else ""
    databases = [without_password(url) for url in stack.database_urls.values()]
    return [
        *services,
        f"{'sandbox':<10} {stack.sandbox.url:<24} {ledger}",
        f"{'nats':<10} {without_password(stack.nats_url)}",
        *(f"{'postgres':<10} {url}" for url in databases),
        *([f"{'':<10} {passwords}"] if passwords else []),
        f"{'mail':<10} {stack.mails}",
    ]


def time_of_day(clock: Clock) -> str:
    return clock.now().isoformat(timespec="milliseconds")[11:23]
