import json
from pathlib import Path

from benchmarks import history
from benchmarks.result import Result

RESULTS = [
    Result(name="CPU per post", value=400, unit="us", baseline=8, target=45),
    Result(name="idle memory", value=430, unit="MB", target=450),
    Result(of="GetDraft", name="CPU", value=600, unit="us"),
    Result(of="GetDraft", name="events", value=0, unit=""),
    Result(name="accounts with two requests in flight", value=0, unit="", target=0),
]


def test_a_run_is_a_line_that_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    history.append(RESULTS, "2026-01-01", file)
    history.append(RESULTS, "2026-01-02", file)
    first, second = history.read(file)
    assert (first.date, second.date) == ("2026-01-01", "2026-01-02")
    assert first.figures["GetDraft: CPU"] == 600
    assert first.headlines() == {
        "CPU per post": 50.0,
        "idle memory": 430,
        "accounts with two requests in flight": 0,
    }
    assert "GetDraft: events" not in first.figures  # a zero that nobody compares


def test_no_history_has_no_runs(tmp_path: Path) -> None:
    assert list(history.read(tmp_path / "history.jsonl")) == []


def test_the_machine_is_described_without_a_name_or_a_path() -> None:
    assert set(history.machine()) == {"cores", "processor", "memory_gb", "kernel", "python"}
    assert "/" not in json.dumps(history.machine())


def test_every_run_that_is_committed_can_be_read() -> None:
    assert all(run.headlines() for run in history.read())
