from pathlib import Path

from benchmarks.history import Run
from benchmarks.plot import draw, series


def run(commit: str, **figures: float) -> Run:
    return Run(commit=commit, date="", machine={}, figures=figures, ratios={}, targets=dict.fromkeys(figures, 45.0))


RUNS = [run("aaaaaaaaaaaa", cost=75.0), run("bbbbbbbbbbbb", cost=60.0, idle=2.0), run("cccccccccccc+", idle=1.5)]


def test_a_headline_has_a_point_for_each_run_that_measured_it() -> None:
    assert series(RUNS) == {"cost": [(0, 75.0), (1, 60.0)], "idle": [(1, 2.0), (2, 1.5)]}


def test_the_plot_is_an_svg_and_the_same_each_time(tmp_path: Path) -> None:
    draw(RUNS, tmp_path / "one.svg")
    draw(RUNS, tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_text().startswith("<?xml")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
