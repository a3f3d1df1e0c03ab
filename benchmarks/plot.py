"""Plots the headlines of benchmarks/history.jsonl over the commits: `make bench-plot` writes an SVG."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks import history
from benchmarks.history import Run

_OUT = Path(__file__).parent / "out" / "history.svg"
_COLUMNS = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-plot", description=__doc__)
    parser.add_argument("--out", type=Path, default=_OUT, help="the SVG to write")
    arguments = parser.parse_args()
    runs = list(history.read())
    if not runs:
        raise SystemExit(f'{history.FILE.name} has no runs yet: make bench ARGS="pipeline calls --history"')
    draw(runs, arguments.out)
    print(f"{len(runs)} runs, written to {arguments.out}")


def series(runs: Sequence[Run]) -> dict[str, list[tuple[int, float]]]:
    """Returns of each headline the numbers of the runs that measured it, with its figures."""
    found: dict[str, list[tuple[int, float]]] = {}
    for number, run in enumerate(runs):
        for name, value in run.headlines().items():
            found.setdefault(name, []).append((number, value))
    return found


def draw(runs: Sequence[Run], out: Path) -> None:
    """Draws a small chart for each headline; the dashed line is its latest target."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "history"  # the same runs give the same file
    found = series(runs)
    targets = {name: value for run in runs for name, value in run.targets.items()}
    rows = -(-len(found) // _COLUMNS)
    figure = Figure(figsize=(5 * _COLUMNS, 3 * rows), layout="constrained")
    for place, (name, points) in enumerate(found.items()):
        axes = figure.add_subplot(rows, _COLUMNS, place + 1)
        axes.plot([number for number, _ in points], [value for _, value in points], marker="o")
        axes.axhline(targets[name], linestyle="--", color="grey")
        axes.set_ylim(0, 1.1 * max(targets[name], *(value for _, value in points)) or 1)
        axes.set_title(name, fontsize=8)
        axes.set_xticks(range(len(runs)), [run.commit[:8] for run in runs], rotation=60, fontsize=6)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
