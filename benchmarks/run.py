"""Measures parts of PostFlow on embedded servers; prints a table and writes benchmarks/out/latest.json.

The ratio compares a value with a floor that was measured in the same run, with another library, or with a target.
"""

import argparse
import asyncio
import base64
import secrets
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks import calendars, calls, floor, jobs, lines, outbox, pipeline, seed, timers
from benchmarks.result import Result, table, write
from devstack.stack import Stack
from publisher_service.adapters.vault import Vault
from servicekit.clock import SystemClock
from servicekit.run.settings import Secret

_OUT = Path(__file__).parent / "out" / "latest.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="make bench",
        usage='make bench [ARGS="[part ...] [options]"]',
        description=__doc__,
        epilog="parts, measured in this order:\n" + _listing(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # Not by `choices`, which would refuse an empty list.
    parser.add_argument("parts", nargs="*", type=_part, metavar="part", help="a part to measure (default: all of them)")
    parser.add_argument("--posts", type=int, default=10_000, help="posts that are due at once (default 10,000)")
    parser.add_argument("--timers", type=int, default=10_000, help="timers that are due at once (default 10,000)")
    parser.add_argument("--rate", type=int, default=50, help="posts a second in the lateness run (default 50)")
    parser.add_argument("--seconds", type=int, default=20, help="length of each lateness run (default 20)")
    parser.add_argument("--events", type=int, default=100_000, help="events that the stream has lost (default 100,000)")
    parser.add_argument(
        "--republish-rate", type=int, default=5000, help="lost events published again, a second (default 5,000)"
    )
    parser.add_argument("--calls", type=int, default=2000, help="measured calls of each method (default 2,000)")
    parser.add_argument("--statements", action="store_true", help="list the statements of each call")
    parser.add_argument("--out", type=Path, default=_OUT, help="the JSON file to write")
    arguments = parser.parse_args()
    if _HELP in arguments.parts:
        parser.print_help()
        return
    results = [
        result for name, part in _PARTS.items() if name in (arguments.parts or _PARTS) for result in part.run(arguments)
    ]
    print(table(results))
    write(results, arguments.out, keep_others=bool(arguments.parts))
    print(f"\nwritten to {arguments.out}")


class _Part(NamedTuple):
    measures: str
    run: Callable[[Namespace], list[Result]]


def _listing() -> str:
    width = max(map(len, _PARTS))
    return "\n".join(f"  {name:{width}}  {part.measures}" for name, part in _PARTS.items())


def _part(name: str) -> str:
    if name not in _PARTS and name != _HELP:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(_PARTS)}")
    return name


def _calendar(_: Namespace) -> list[Result]:
    _announce("calendar")
    return calendars.measure()


def _timers(arguments: Namespace) -> list[Result]:
    _announce("timers")
    return asyncio.run(timers.measure(at_once=arguments.timers, per_second=100, seconds=arguments.seconds))


def _pipeline(arguments: Namespace) -> list[Result]:
    return asyncio.run(_measure_pipeline(arguments))


def _jobs(_: Namespace) -> list[Result]:
    _announce("jobs")
    return asyncio.run(jobs.measure(10_000))


async def _measure_pipeline(arguments: Namespace) -> list[Result]:
    """Runs a stack of its own in a temporary folder."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    environment = {"POSTFLOW_PUBLISHER_CREDENTIALS_KEY": key, "POSTFLOW_LOG_LEVEL": "WARNING"}
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with Stack(Path(folder), durable=True, environment=environment) as stack:
            assert stack.postgres is not None
            seeder = seed.Seeder(stack.database_urls, Vault([("default", Secret(key))]), SystemClock().now())
            _announce("idle")
            results = await pipeline.idle(stack, 15)
            _announce("floor")
            bare = await floor.measure(stack.postgres, 100_000)
            _announce("posts due at once")
            drained = await pipeline.drain(stack, seeder, arguments.posts, {one.name: one.value for one in bare})
            _announce("lateness")
            late = await pipeline.lateness(stack, arguments.rate, arguments.seconds)
            _announce("AddToQueue")
            added = await pipeline.add_to_queue(stack, 300)
    return [*bare, *drained, *late, *added, *results]


def _calls(arguments: Namespace) -> list[Result]:
    return asyncio.run(calls.measure(arguments.calls, listing=arguments.statements))


def _lines(arguments: Namespace) -> list[Result]:
    return asyncio.run(_measure_lines(arguments))


async def _measure_lines(arguments: Namespace) -> list[Result]:
    """Runs a stack of its own in a temporary folder."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    environment = {"POSTFLOW_PUBLISHER_CREDENTIALS_KEY": key, "POSTFLOW_LOG_LEVEL": "WARNING"}
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with Stack(Path(folder), durable=True, environment=environment) as stack:
            seeder = seed.Seeder(stack.database_urls, Vault([("default", Secret(key))]), SystemClock().now())
            _announce("lateness beside the backlog of a busy account")
            return await lines.measure(stack, seeder, backlog=arguments.posts, seconds=arguments.seconds)


def _outbox(arguments: Namespace) -> list[Result]:
    _announce("the outbox of a lost stream")
    return asyncio.run(outbox.measure(arguments.events, arguments.republish_rate))


def _announce(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)


_HELP = "help"
_PARTS: Mapping[str, _Part] = {
    "calendar": _Part("the next slot, timer or cron firing: civil against three libraries (half a minute)", _calendar),
    "jobs": _Part("jobkit's runs a second on PostgreSQL, against bare SQL", _jobs),
    "timers": _Part("Schedule alone: timers due at once, lateness, slot times, the look for due timers", _timers),
    "outbox": _Part("the outbox of a lost stream: time to publish all again, delay of new events meanwhile", _outbox),
    "calls": _Part("CPU of each call until its events have settled, against a call that does nothing", _calls),
    "pipeline": _Part("posts through all four services: rate, CPU and lateness, AddToQueue, idling", _pipeline),
    "lines": _Part("lateness of posts beside a backlog of one busy account", _lines),
}


if __name__ == "__main__":
    main()
