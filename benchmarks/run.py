"""Measures parts of PostFlow on embedded servers; prints a table and writes benchmarks/out/latest.json.

The ratio compares a value with a floor that was measured in the same run, with another library, or with a target.
"""

import argparse
import asyncio
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks import (
    adapters,
    calendars,
    calls,
    dispatch,
    freeze,
    held,
    history,
    idling,
    isolation,
    jobs,
    lateness,
    lines,
    one_in_flight,
    outbox,
    overload,
    pipeline,
    queues,
    refresh,
    sites,
    timers,
)
from benchmarks.profiles import Profiler
from benchmarks.result import Result, table, write
from servicekit.clock import SystemClock

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
    parser.add_argument(
        "--posts",
        type=_sizes,
        default=[10_000],
        help="posts that are due at once (default 10000); 10000,60000 measures both, and how the cost grows",
    )
    parser.add_argument(
        "--profile", action="store_true", help="write flame graphs of the services (pipeline, calls, queue)"
    )
    parser.add_argument("--timers", type=int, default=10_000, help="timers that are due at once (default 10,000)")
    parser.add_argument("--rate", type=int, default=100, help="posts a second in the lateness run (default 100)")
    parser.add_argument("--seconds", type=int, default=20, help="length of each lateness run (default 20)")
    parser.add_argument("--idle", type=int, default=30, help="seconds for which idling is measured (default 30)")
    parser.add_argument("--held", type=int, default=100_000, help="posts that are held back (default 100,000)")
    parser.add_argument(
        "--backlog", type=int, default=60_000, help="posts due while Publisher is down (default 60,000)"
    )
    parser.add_argument("--stopped", type=float, default=60.0, help="seconds for which it is down (default 60)")
    parser.add_argument("--slow-posts", type=int, default=4_000, help="posts of a slow provider (default 4,000)")
    parser.add_argument("--answer-seconds", type=float, default=2.0, help="seconds until it answers (default 2)")
    parser.add_argument("--due", type=int, default=40_000, help="slots that are due at once (default 40,000)")
    parser.add_argument("--future", type=int, default=1_000_000, help="slots that are not due yet (default 1,000,000)")
    parser.add_argument("--depth", type=int, default=10_000, help="slots of the deep queue (default 10,000)")
    parser.add_argument("--burst", type=int, default=20_000, help="posts of one tenant at one time (default 20,000)")
    parser.add_argument("--events", type=int, default=100_000, help="events that the stream has lost (default 100,000)")
    parser.add_argument(
        "--republish-rate", type=int, default=5000, help="lost events published again, a second (default 5,000)"
    )
    parser.add_argument("--frozen", type=int, default=100_000, help="due posts of a freeze (default 100,000)")
    parser.add_argument("--accounts", type=int, default=10_000, help="accounts to refresh at once (default 10,000)")
    parser.add_argument("--calls", type=int, default=2000, help="measured calls of each method (default 2,000)")
    parser.add_argument("--statements", action="store_true", help="list the statements of each call")
    parser.add_argument("--history", action="store_true", help="add this run to benchmarks/history.jsonl")
    parser.add_argument("--out", type=Path, default=_OUT, help="the JSON file to write")
    arguments = parser.parse_args()
    if _HELP in arguments.parts:
        parser.print_help()
        return
    if arguments.history and arguments.profile:
        parser.error("a profile slows the services down: such a run is no part of the history")
    results = [
        result for name, part in _PARTS.items() if name in (arguments.parts or _PARTS) for result in part.run(arguments)
    ]
    print(table(results))
    write(results, arguments.out, keep_others=bool(arguments.parts))
    print(f"\nwritten to {arguments.out}")
    if arguments.history:
        history.append(results, SystemClock().now().date().isoformat())


class _Part(NamedTuple):
    measures: str
    run: Callable[[Namespace], list[Result]]


def _listing() -> str:
    width = max(map(len, _PARTS))
    return "\n".join(f"  {name:{width}}  {part.measures}" for name, part in _PARTS.items())


def _sizes(text: str) -> list[int]:
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers, such as 10000,60000") from None


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
    return asyncio.run(pipeline.measure(arguments.posts, Profiler(wanted=arguments.profile)))


def _jobs(_: Namespace) -> list[Result]:
    _announce("jobs")
    return asyncio.run(jobs.measure(10_000))


def _calls(arguments: Namespace) -> list[Result]:
    return asyncio.run(calls.measure(arguments.calls, Profiler(wanted=arguments.profile), listing=arguments.statements))


def _dispatch(arguments: Namespace) -> list[Result]:
    return asyncio.run(dispatch.measure(arguments.due, arguments.future, arguments.burst))


def _queue(arguments: Namespace) -> list[Result]:
    return asyncio.run(queues.measure(arguments.depth, Profiler(wanted=arguments.profile)))


def _overload(arguments: Namespace) -> list[Result]:
    load = overload.Load(
        posts=arguments.backlog,
        stopped=arguments.stopped,
        slow_posts=arguments.slow_posts,
        answer_seconds=arguments.answer_seconds,
    )
    return asyncio.run(overload.measure(load))


def _lateness(arguments: Namespace) -> list[Result]:
    return asyncio.run(_measure_lateness(arguments))


async def _measure_lateness(arguments: Namespace) -> list[Result]:
    async with sites.running() as site:
        _announce("lateness, AddToQueue, one request in flight")
        late = await lateness.measure(site.stack, site.seeder, arguments.rate, arguments.seconds)
        added = await lateness.add_to_queue(site.stack, 300)
        return [*late, *added, *await one_in_flight.measure(site)]


def _idle(arguments: Namespace) -> list[Result]:
    _announce("idling, and the start of make run")
    return asyncio.run(idling.measure(arguments.idle))


def _held(arguments: Namespace) -> list[Result]:
    _announce("posts that are held back")
    return asyncio.run(held.measure(arguments.held, arguments.idle))


def _lines(arguments: Namespace) -> list[Result]:
    return asyncio.run(_measure_lines(arguments))


async def _measure_lines(arguments: Namespace) -> list[Result]:
    async with sites.running() as site:
        _announce("lateness beside the backlog of a busy account")
        return await lines.measure(site.stack, site.seeder, backlog=arguments.posts[0], seconds=arguments.seconds)


def _isolation(_: Namespace) -> list[Result]:
    return asyncio.run(_measure_isolation())


async def _measure_isolation() -> list[Result]:
    async with sites.running() as site:
        _announce("lateness beside a slow provider")
        return await isolation.measure(site)


def _freeze(arguments: Namespace) -> list[Result]:
    _announce("the freeze of an organization, and its release")
    return asyncio.run(freeze.measure(arguments.frozen, arguments.seconds))


def _refresh(arguments: Namespace) -> list[Result]:
    _announce("the refresh of credentials that are due at once")
    return asyncio.run(refresh.measure(arguments.accounts))


def _adapters(arguments: Namespace) -> list[Result]:
    _announce("posts through the adapters of networks, and checks of contents")
    return adapters.measure(arguments.calls)


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
    "idle": _Part("CPU and memory of a stack that idles, and the start of make run", _idle),
    "pipeline": _Part(
        "posts due at once through all four services: CPU against bare SQL, WAL, rows, events", _pipeline
    ),
    "dispatch": _Part(
        "due slots to commands, beside a million future slots; small tenants beside a big one", _dispatch
    ),
    "queue": _Part("adding to queues: how it grows with their depth, single and batch calls, against bare SQL", _queue),
    "overload": _Part("commands and events per post while Publisher is down, or its provider is slow", _overload),
    "lateness": _Part("lateness of posts at a steady rate; AddToQueue; one request in flight per account", _lateness),
    "isolation": _Part("lateness of posts beside another provider that takes 2 s for each request", _isolation),
    "held": _Part("CPU of a stack that idles while many posts are over a daily cap, or on hold", _held),
    "lines": _Part("lateness of posts beside a backlog of one busy account", _lines),
    "refresh": _Part("the refresh of the credentials of many accounts: accounts a second, statements each", _refresh),
    "adapters": _Part("CPU of a post in the adapter of each network, beside the sandbox's; ValidateContent", _adapters),
    "freeze": _Part("a hold of an organization with due posts: its answer, its cost while it lasts, its end", _freeze),
}


if __name__ == "__main__":
    main()
