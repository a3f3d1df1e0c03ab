"""A measured figure and its ratio to a baseline."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A figure. `baseline` is a floor of the same run, another library, or a target; `ratio` is value / baseline."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    note: str = ""
    target: float | None = None
    """The most that the ratio may be, or the value if there is no baseline. A figure with a target is a headline."""
    of: str = ""
    """The thing of which this is one of many figures: these are shown in a table of their own."""

    @property
    def meets_target(self) -> bool:
        """Tells of a headline whether it is where it should be."""
        found = self.value if self.ratio is None else self.ratio
        return self.target is None or found <= self.target

    @property
    def ratio(self) -> float | None:
        return None if not self.baseline else self.value / self.baseline


def write(results: Sequence[Result], path: Path, *, keep_others: bool = False) -> None:
    """Writes the results as JSON; `keep_others` keeps rows of earlier runs that were not measured again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    measured = {(result.of, result.name) for result in results}
    others = json.loads(path.read_text()) if keep_others and path.exists() else []
    rows = [row for row in others if (row.get("of", ""), row["name"]) not in measured]
    rows += [asdict(result) | {"ratio": result.ratio} for result in results]
    path.write_text(json.dumps(rows, indent=2) + "\n")


def table(results: Sequence[Result]) -> str:
    """Returns the figures as text: those that stand alone, then a table for all things that have the same figures."""
    alone = [result for result in results if not result.of]
    tables = [_alone(alone)] if alone else []
    tables += [_crossed(names, things) for names, things in _alike(results).items()]
    return "\n\n".join(tables)


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the value below which that share of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _alone(results: Sequence[Result]) -> str:
    heads = ("measure", "value", "unit", "baseline", "ratio", "at most", "", "compared with")
    rows = [heads] + [
        (
            result.name,
            _exact(result.value),
            result.unit,
            "" if result.baseline is None else _exact(result.baseline),
            "" if result.ratio is None else _exact(result.ratio),
            "" if result.target is None else f"{result.target:g}",
            "" if result.meets_target else "missed",
            result.note,
        )
        for result in results
    ]
    return _aligned(rows)


def _alike(results: Iterable[Result]) -> Mapping[tuple[str, ...], Mapping[str, Mapping[str, Result]]]:
    """Groups the things that have figures of the same names."""
    things: dict[str, dict[str, Result]] = {}
    for result in results:
        if result.of:
            things.setdefault(result.of, {})[result.name] = result
    groups: dict[tuple[str, ...], dict[str, Mapping[str, Result]]] = {}
    for thing, figures in things.items():
        groups.setdefault(tuple(figures), {})[thing] = figures
    return groups


def _crossed(names: Sequence[str], things: Mapping[str, Mapping[str, Result]]) -> str:
    """Returns the longer one of figures and things as rows."""
    units = {name: next(iter(things.values()))[name].unit for name in names}
    if len(things) > len(names):
        heads: list[Sequence[str]] = [("", *names), ("", *units.values())]
        rows = [(thing, *(_number(figures[name].value) for name in names)) for thing, figures in things.items()]
    else:
        heads = [("", *things, "")]
        rows = [
            (name, *(_number(figures[name].value) for figures in things.values()), unit) for name, unit in units.items()
        ]
    return _aligned([*heads, *rows])


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _exact(value: float) -> str:
    """Returns the number with enough digits to tell why a target is missed."""
    return f"{value:.3f}" if 0 < abs(value) < 2 else _number(value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
