"""Figures of calls: what each costs, as a ratio to a call that does nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.result import Result

NOTHING = "a call that does nothing"
LIFE = ("CreateDraft", "ApproveDraft", "ScheduleAt")
"""The calls of a post before it is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One call of a method on average; of a method that takes many items, one item."""

    method: str
    cpu: Mapping[str, float]
    """Microseconds by process."""
    statements: float
    transactions: float
    wal: float
    events: float
    envelopes: float
    per_second: float

    @property
    def total(self) -> float:
        return sum(self.cpu.values())


def results(costs: Sequence[Cost]) -> list[Result]:
    """Returns the headlines, then the figures of each method."""
    totals = {cost.method: cost.total for cost in costs}
    floor = totals[NOTHING]
    life = sum(totals[name] for name in LIFE)
    headlines = [
        _headline(f"calls of a post: {' + '.join(LIFE)}", life, floor, target=12),
        _headline("GetDraft", totals["GetDraft"], floor, target=2.5),
    ]
    headlines += [
        _headline(f"{name}, per item", total, floor, target=2)
        for name, total in totals.items()
        if name.startswith("Batch")
    ]
    return headlines + [result for cost in costs for result in _figures(cost, floor)]


def _headline(name: str, value: float, floor: float, *, target: float) -> Result:
    return Result(name=name, value=value, unit="us CPU", baseline=floor, note=NOTHING, target=target)


def _figures(cost: Cost, floor: float) -> Iterator[Result]:
    def figure(name: str, value: float, unit: str) -> Result:
        return Result(of=cost.method, name=name, value=value, unit=unit)

    yield figure("ratio", cost.total / floor, "calls that do nothing")
    yield figure("CPU", cost.total, "us")
    yield from (figure(f"CPU: {name}", value, "us") for name, value in cost.cpu.items())
    yield figure("statements", cost.statements, "round trips to PostgreSQL")
    yield figure("transactions", cost.transactions, "")
    yield figure("WAL", cost.wal, "bytes")
    yield figure("events", cost.events, "of all services")
    yield figure("envelopes", cost.envelopes, "messages of the stream")
    yield figure("rate", cost.per_second, "a second")
