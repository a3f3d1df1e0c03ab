"""The `postflow` command itself: its version, its help and its usage errors."""

import subprocess
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

POSTFLOW = Path(sysconfig.get_path("scripts"), "postflow")


def _postflow(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([POSTFLOW, *arguments], capture_output=True, text=True, check=False, timeout=60)


def test_the_versions_are_printed() -> None:
    done = _postflow("version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"PostFlow {version('postflow')} on Python 3.")
    assert done.stdout.endswith(f"tzdata {version('tzdata')}\n")


@pytest.mark.parametrize(
    "command",
    [(), ("migrate",), ("streams",), ("stats",), ("dead-letters",), ("dead-letters", "redrive"), ("version",)],
    ids=" ".join,
)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    done = _postflow(*command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(" ".join(("usage: postflow", *command)))


def test_no_command_and_an_unknown_one_are_usage_errors() -> None:
    assert _postflow().returncode == 2
    assert _postflow("up").returncode == 2


def test_migrate_says_who_complains() -> None:
    """The same code runs as `postflow migrate` and as `postflow-migrate`."""
    done = _postflow("migrate", "all", "--to", "0001")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "postflow migrate: --to needs one service: each has revisions of its own\n"
