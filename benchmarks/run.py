"""Measures the parts that are named, or all; prints a table and writes benchmarks/out/latest.json."""

import argparse
import asyncio
import base64
import secrets
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import calendars, floor, jobs, lines, outbox, pipeline, seed, timers
from benchmarks.result import Result, table, write
from devstack.stack import Stack
from publisher_service.adapters.vault import Vault
from servicekit.clock import SystemClock
from servicekit.run.settings import Secret

_OUT = Path(__file__).parent / "out" / "latest.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    # Not by `choices`: none at all would be refused as no choice.
    named = " | ".join(_PARTS)
    parser.add_argument("parts", nargs="*", type=_part, metavar=named, help="what to measure (default: every part)")
    parser.add_argument("--posts", type=int, default=10_000, help="posts that are due at once (default 10,000)")
    parser.add_argument("--timers", type=int, default=10_000, help="timers that are due at once (default 10,000)")
    parser.add_argument("--rate", type=int, default=50, help="posts a second of the lateness run (default 50)")
    parser.add_argument("--seconds", type=int, default=20, help="length of the lateness runs (default 20)")
    parser.add_argument("--events", type=int, default=100_000, help="events that a stream has lost (default 100,000)")
    parser.add_argument("--republish-rate", type=int, default=5000, help="of lost events, a second (default 5,000)")
    parser.add_argument("--out", type=Path, default=_OUT, help="where the JSON goes")
    arguments = parser.parse_args()
    results = [result for part in arguments.parts or _PARTS for result in _PARTS[part](arguments)]
    print(table(results))
    write(results, arguments.out, keep_others=bool(arguments.parts))
    print(f"\nwritten to {arguments.out}")


def _part(name: str) -> str:
    if name not in _PARTS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(_PARTS)}")
    return name


def _calendar(_: Namespace) -> list[Result]:
    _tell("calendar")
    return calendars.measure()


def _timers(arguments: Namespace) -> list[Result]:
    _tell("timers")
    return asyncio.run(timers.measure(at_once=arguments.timers, per_second=100, seconds=arguments.seconds))


def _pipeline(arguments: Namespace) -> list[Result]:
    return asyncio.run(_measure_pipeline(arguments))


def _jobs(_: Namespace) -> list[Result]:
    _tell("jobs")
    return asyncio.run(jobs.measure(10_000))


async def _measure_pipeline(arguments: Namespace) -> list[Result]:
    """On a stack of its own in a temporary folder."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    environment = {"POSTFLOW_PUBLISHER_CREDENTIALS_KEY": key, "POSTFLOW_LOG_LEVEL": "WARNING"}
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with Stack(Path(folder), durable=True, environment=environment) as stack:
            assert stack.postgres is not None
            seeder = seed.Seeder(stack.database_urls, Vault([("default", Secret(key))]), SystemClock().now())
            _tell("idle")
            results = await pipeline.idle(stack, 15)
            _tell("floor")
            bare = await floor.measure(stack.postgres, 100_000)
            _tell("posts due at once")
            drained = await pipeline.drain(stack, seeder, arguments.posts, {one.name: one.value for one in bare})
            _tell("lateness")
            late = await pipeline.lateness(stack, arguments.rate, arguments.seconds)
            _tell("AddToQueue")
            added = await pipeline.add_to_queue(stack, 300)
    return [*bare, *drained, *late, *added, *results]


def _lines(arguments: Namespace) -> list[Result]:
    return asyncio.run(_measure_lines(arguments))


async def _measure_lines(arguments: Namespace) -> list[Result]:
    """On a stack of its own in a temporary folder."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    environment = {"POSTFLOW_PUBLISHER_CREDENTIALS_KEY": key, "POSTFLOW_LOG_LEVEL": "WARNING"}
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with Stack(Path(folder), durable=True, environment=environment) as stack:
            seeder = seed.Seeder(stack.database_urls, Vault([("default", Secret(key))]), SystemClock().now())
            _tell("lateness beside the line of a busy account")
            return await lines.measure(stack, seeder, heap=arguments.posts, seconds=arguments.seconds)


def _outbox(arguments: Namespace) -> list[Result]:
    _tell("an outbox whose stream was lost")
    return asyncio.run(outbox.measure(arguments.events, arguments.republish_rate))


def _tell(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)


_PARTS: Mapping[str, Callable[[Namespace], list[Result]]] = {
    "calendar": _calendar,
    "timers": _timers,
    "jobs": _jobs,
    "pipeline": _pipeline,
    "lines": _lines,
    "outbox": _outbox,
}


if __name__ == "__main__":
    main()
