"""Commit subjects name an area and give an order; the check works without history, too."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "subject",
    [
        "queue: refuse reorder against a stale etag",
        "queue, publisher: embed the slot's sequence",
        "tests/faults: pass through one failpoint after the other",
        "docs: address the reader",
    ],
)
def test_an_order_is_accepted(root: Path, subject: str) -> None:
    assert checked(root, subject).returncode == 0


@pytest.mark.parametrize(
    "subject",
    [
        "refuse reorder against a stale etag",
        "Queue: refuse reorder against a stale etag",
        "queue: refuses reorder against a stale etag",
        "queue: refused reorder against a stale etag",
        "queue: refusing reorder against a stale etag",
        "queue: a stale etag is refused",
        "queue: what is stale is refused",
        "queue: README, lines",
        "queue: lines",
        "queue: refuse reorder against a stale etag.",
        "queue: refuse reorder against a stale etag, and also against one that was never given to anyone",
    ],
)
def test_anything_else_is_refused(root: Path, subject: str) -> None:
    done = checked(root, subject)
    assert done.returncode == 1
    assert subject in done.stdout


def test_the_commits_since_the_rule_keep_it(root: Path) -> None:
    done = checked(root)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("history", "finding"),
    [
        pytest.param("exit 128", "", id="no repository"),
        pytest.param('[ "$1" != cat-file ] && echo false', "", id="a history without the beginning"),
        pytest.param(
            'case "$1" in rev-parse) echo true ;; log) echo "queue: what is" ;; *) exit 1 ;; esac', "what", id="shallow"
        ),
        pytest.param('case "$*" in log*..HEAD) echo "queue: a stale etag" ;; esac', "'a'", id="the whole history"),
    ],
)
def test_a_clone_checks_the_history_that_it_has(root: Path, tmp_path: Path, history: str, finding: str) -> None:
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\n{history}\n")
    git.chmod(0o755)
    command: list[str | Path] = [sys.executable, root / "tools/commits"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == bool(finding), done.stderr
    assert finding in done.stdout


def test_without_git_there_is_nothing_to_check(root: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, root / "tools/commits"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def checked(root: Path, *subjects: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / "tools/commits", *subjects], cwd=root, capture_output=True, text=True, check=False)
