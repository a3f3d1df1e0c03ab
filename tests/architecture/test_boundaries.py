"""Every step of Publisher that commits has a failpoint behind the commit, where the fault runs break the process."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from publisher_service.main import MIGRATIONS
from servicekit import failpoints
from testkit.stack.boundaries import BOUNDARIES

COMMITS = {"self._database.run", "self._database.transaction", "self._ledger.once", "self._ledger.once_each"}
# What is lost there is done again: a lease ends a little earlier.
EXEMPT = {"prepare_posts.py": "_extend"}
PREFIXES = ("publisher.", "relay.", "consumer.")
"""Publisher's own failpoints, and those of every process that announces and follows events."""
Function = ast.AsyncFunctionDef | ast.FunctionDef


def test_a_failpoint_follows_every_commit_of_publisher(root: Path, modules: Mapping[Path, ast.Module]) -> None:
    """Add one: `_COMMITTED = declare("publisher.<step>.committed")`, and `await failpoint(_COMMITTED)` behind it."""
    application = root / "services/publisher/publisher_service/application"
    found = {
        file.name: list(_commits(module, EXEMPT.get(file.name, "")))
        for file, module in modules.items()
        if file.is_relative_to(application)
    }
    without = {
        name: lines for name, functions in found.items() if (lines := [line for line, ok in functions if not ok])
    }
    assert without == {}, "commits without a failpoint behind them, by file and line"
    assert sum(map(len, found.values())) > 15


def test_every_failpoint_of_publisher_is_in_the_matrix() -> None:
    """Add it to `testkit.stack.boundaries`, with work that leads a process through it."""
    assert MIGRATIONS  # its module imports all others
    declared = {name for name in failpoints.declared() if name.startswith(PREFIXES)}
    assert declared == set(BOUNDARIES)


def _commits(module: ast.Module, exempt: str) -> Iterator[tuple[int, bool]]:
    """Finds each function that commits: the line of its last commit, and whether a failpoint follows it."""
    for function in (node for node in ast.walk(module) if isinstance(node, Function)):
        committing = [call.lineno for call in ast.walk(function) if isinstance(call, ast.Call) and _is_commit(call)]
        if committing and function.name != exempt:
            passed = [
                call.lineno
                for call in ast.walk(function)
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "failpoint"
            ]
            yield max(committing), any(line > max(committing) for line in passed)


def _is_commit(call: ast.Call) -> bool:
    return ast.unparse(call.func) in COMMITS
