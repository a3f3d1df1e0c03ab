"""Measures what a post costs from its due time on: a drain of each size, on a stack of its own, against the floor."""

import sys
from collections.abc import Iterator, Sequence

from benchmarks import floor, sites
from benchmarks.drain import Drained, drain
from benchmarks.floor import Floor
from benchmarks.profiles import Profiler
from benchmarks.result import Result
from benchmarks.wal import Written

_FLOOR_JOBS = 100_000
_LEAST = 0.005
"""Tables with fewer writes per post are not shown."""


async def measure(sizes: Sequence[int], profiler: Profiler) -> list[Result]:
    measured: list[tuple[Floor, Drained]] = []
    for size in sizes:
        async with sites.running() as running:
            print(f"measuring: {size:,} posts due at once between rounds of the floor", file=sys.stderr, flush=True)
            bare = await floor.rounds(running.postgres, _FLOOR_JOBS)
            drained = await drain(running, size, profiler)
            bare += await floor.rounds(running.postgres, _FLOOR_JOBS)
            measured.append((floor.middle(bare), drained))
    return results(measured)


def results(measured: Sequence[tuple[Floor, Drained]]) -> list[Result]:
    """Returns the ratios to the floor, what each size costs in detail, and how the cost grows with the size."""
    first, last = measured[0][1], measured[-1][1]
    found = [_headline(bare, drained) for bare, drained in measured]
    if first is not last:
        found.append(
            Result(
                name=f"CPU per post, {last.posts:,} due at once, against {first.posts:,}",
                value=last.total,
                unit="us",
                baseline=first.total,
                note=f"{first.posts:,} due at once",
                target=1.05,
            )
        )
    for bare, drained in measured:
        found += _figures(bare, drained)
    for _, drained in measured:
        found += _tables(drained.written, drained.posts, "" if drained is first else f", {drained.posts:,} posts")
    return found


def _headline(bare: Floor, drained: Drained) -> Result:
    return Result(
        name=f"CPU per post, {drained.posts:,} due at once, against the floor",
        value=drained.total,
        unit="us",
        baseline=bare.cpu,
        note="bare SQL claim and acknowledge",
        target=45,
    )


def _figures(bare: Floor, drained: Drained) -> Iterator[Result]:
    def figure(name: str, value: float, unit: str) -> Result:
        return Result(of=f"{drained.posts:,} posts", name=name, value=value, unit=unit)

    written, posts = drained.written, drained.posts
    yield figure("rate", drained.per_second, "posts a second")
    yield figure("CPU per post", drained.total, "us")
    yield from (figure(f"CPU: {name}", spent, "us") for name, spent in drained.cpu.items())
    yield figure("CPU: sandbox, not counted", drained.sandbox, "us")
    yield figure("floor: CPU per job", bare.cpu, "us")
    yield figure("floor: rate", bare.per_second, "jobs a second")
    yield figure("commands", drained.counted.commands, "messages of PUBLISH per post")
    yield figure("events", drained.counted.events, "of Publisher per post")
    yield figure("envelopes", drained.counted.envelopes, "messages of EVENTS per post")
    yield figure("WAL", written.bytes.total() / posts, "bytes per post")
    yield from (figure(f"WAL: {name}", size / posts, "bytes per post") for name, size in sorted(written.bytes.items()))
    for name, commits in sorted(written.commits.items()):
        yield figure(f"posts per transaction: {name}", posts / commits, "posts per commit that wrote")
    versions = written.inserted.total() + written.updated.total() + written.hot.total()
    yield figure("row versions", versions / posts, "per post")
    yield figure("index entries", written.entries.total() / posts, "per post")
    yield figure("HOT share", _hot_share(written.updated.total(), written.hot.total()), "of the updates")


def _tables(written: Written, posts: int, suffix: str) -> Iterator[Result]:
    kinds = (written.inserted, written.updated, written.hot, written.deleted, written.locked, written.entries)
    for relation in sorted({each for kind in kinds for each in kind}):
        inserted, updated, hot, deleted, locked, entries = (kind[relation] / posts for kind in kinds)
        if max(inserted, updated, hot, deleted, locked, entries) < _LEAST:
            continue
        of = ".".join(relation) + suffix
        yield Result(of=of, name="inserts", value=inserted, unit="per post")
        yield Result(of=of, name="updates", value=updated + hot, unit="per post")
        yield Result(of=of, name="HOT share", value=_hot_share(updated, hot), unit="")
        yield Result(of=of, name="deletes", value=deleted, unit="per post")
        yield Result(of=of, name="row locks", value=locked, unit="per post")
        yield Result(of=of, name="index entries", value=entries, unit="per post")


def _hot_share(updated: float, hot: float) -> float:
    return hot / (updated + hot) if updated + hot else 0.0
