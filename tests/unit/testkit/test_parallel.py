import subprocess
import sys
from pathlib import Path

import pytest

ONE = "import logging\n\ndef test_one():\n    logging.warning('\\ud800')\n"
RUN = (sys.executable, "-m", "pytest", "-p", "testkit.parallel", "-p", "no:cacheprovider", "-n", "auto", "-rP")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for tier in ("unit", "e2e"):
        (tmp_path / tier).mkdir()
        (tmp_path / tier / f"test_{tier}.py").write_text(ONE)
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        (*RUN, *arguments), cwd=folder, capture_output=True, encoding="utf-8", timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_folder_runs_in_workers_that_survive_any_output(folder: Path) -> None:
    shown = run(folder, ".")
    assert "workers" in shown
    assert "2 passed" in shown
    assert r"\ud800" in shown


@pytest.mark.parametrize("arguments", [("unit/test_unit.py",), ("unit/test_unit.py::test_one",), (".", "-k", "one")])
def test_a_few_tests_run_in_this_process(folder: Path, arguments: tuple[str, ...]) -> None:
    assert "workers" not in run(folder, *arguments)


def test_the_tiers_with_long_files_come_first(folder: Path) -> None:
    shown = run(folder, "-n0", "-v")
    assert shown.index("e2e/test_e2e.py::test_one PASSED") < shown.index("unit/test_unit.py::test_one PASSED")
