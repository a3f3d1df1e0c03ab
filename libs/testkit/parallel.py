"""Spreads a run over processes. Each process starts its own servers; a file is never divided.

`addopts` sets `--numprocesses=auto`, which this module defines; `-n 0` or `-n 3` on the command line overrides it.
"""

import os
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

FIRST = ("faults", "e2e", "contract", "usecase", "rpc")
"""The tiers with the longest files run first, so that no process is left alone with one of them at the end."""

NARROWING = ("keyword", "markexpr", "lf", "failedfirst", "stepwise")


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Returns one process per core and one more for folders, because many tests wait for a server that restarts.

    Returns 0, for this process only, for a few tests, or if the output is watched.
    """
    narrowed = any(config.getoption(name, default=False) for name in NARROWING)
    watched = config.getoption("capture") == "no"
    if narrowed or watched or not _names_folders(config.args, config.invocation_params.dir):
        return 0
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escapes lone surrogates in captured output: they would kill the worker, which sends its reports as UTF-8."""
    report = yield
    report.sections = [(title, _encodable(text)) for title, text in report.sections]
    return report


def _names_folders(arguments: Iterable[str], here: Path) -> bool:
    return any((here / argument).is_dir() for argument in arguments)


def _place(item: pytest.Item) -> int:
    parts = item.path.parts
    return next((place for place, tier in enumerate(FIRST) if tier in parts), len(FIRST))


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
