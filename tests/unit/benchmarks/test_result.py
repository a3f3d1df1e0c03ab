import json
from pathlib import Path

from benchmarks.result import Result, percentile, table, write


def test_a_ratio_needs_a_baseline_that_is_not_zero() -> None:
    assert Result(name="x", value=3, unit="s", baseline=2).ratio == 1.5
    assert Result(name="x", value=3, unit="s").ratio is None
    assert Result(name="x", value=3, unit="s", baseline=0).ratio is None


def test_figures_that_stand_alone_are_rows_with_their_ratio() -> None:
    shown = table([Result(name="rate", value=1234.5, unit="posts/s", baseline=1000, note="target")])
    assert shown.splitlines()[1].split() == ["rate", "1,234", "posts/s", "1,000", "1.234", "target"]


def test_figures_of_a_thing_are_rows_of_a_table_of_the_things() -> None:
    figures = [
        Result(of=thing, name=name, value=value, unit="us")
        for thing, values in (("Get", (1.0, 2.0)), ("Put", (3.0, 400.0)))
        for name, value in zip(("all", "nats"), values, strict=True)
    ]
    assert [line.split() for line in table(figures).splitlines()] == [
        ["Get", "Put"],
        ["all", "1.00", "3.00", "us"],
        ["nats", "2.00", "400", "us"],
    ]


def test_things_with_other_figures_have_a_table_of_their_own() -> None:
    figures = [Result(of="a", name="x", value=1, unit=""), Result(of="b", name="y", value=1, unit="")]
    assert len(table(figures).split("\n\n")) == 2


def test_figures_that_were_not_measured_again_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "out" / "latest.json"
    write([Result(name="a", value=1, unit=""), Result(name="a", of="thing", value=2, unit="")], file)
    write([Result(name="a", value=3, unit="", baseline=6)], file, keep_others=True)
    rows = json.loads(file.read_text())
    assert [(row["of"], row["name"], row["value"], row["ratio"]) for row in rows] == [
        ("thing", "a", 2, None),
        ("", "a", 3, 0.5),
    ]


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([3, 1, 2], 0.99) == 3
    assert percentile([3, 1, 2], 1.0) == 3


def test_more_things_than_figures_are_rows() -> None:
    figures = [Result(of=thing, name="writes", value=1, unit="per post") for thing in ("a", "b")]
    assert [line.split() for line in table(figures).splitlines()] == [
        ["writes"],
        ["per", "post"],
        ["a", "1.00"],
        ["b", "1.00"],
    ]


def test_a_headline_that_misses_its_target_says_so() -> None:
    headline = Result(name="x", value=100, unit="us", baseline=2, target=45, note="floor")
    assert not headline.meets_target
    assert table([headline]).splitlines()[1].split() == ["x", "100", "us", "2.00", "50.00", "45", "missed", "floor"]
    growth = Result(name="growth", value=1.023, unit="", target=1.02)
    assert table([growth]).splitlines()[1].split() == ["growth", "1.023", "1.02", "missed"]
    assert Result(name="x", value=44, unit="us", target=45).meets_target
    assert Result(name="x", value=44, unit="us").meets_target
