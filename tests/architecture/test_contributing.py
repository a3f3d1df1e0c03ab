"""Every rule of CONTRIBUTING names checks that exist."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def rules(root: Path) -> dict[str, str]:
    """Maps each rule to the cell that says what holds it."""
    section = (root / "CONTRIBUTING.md").read_text().partition("\n## Rules\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    assert all(len(row) == 2 for row in rows)
    return dict(rows[1:])


@pytest.fixture(scope="module")
def settings(root: Path) -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["tool"]
    return read


def test_every_rule_names_what_holds_it(rules: dict[str, str]) -> None:
    assert len(rules) > 25
    assert [
        rule for rule, held in rules.items() if not re.search(r"contracts? \"|lint `|ruff `|`tests/|`tools/", held)
    ] == []


def test_named_files_exist(root: Path, rules: dict[str, str]) -> None:
    named = {path for held in rules.values() for path in re.findall(r"`((?:tests|tools)/[\w./]+)`", held)}
    assert len(named) > 10
    assert [path for path in named if not (root / path).is_file()] == []


def test_every_file_of_rules_is_named(root: Path, rules: dict[str, str]) -> None:
    held = " ".join(rules.values())
    tests = (root / "tests/architecture").glob("test_*.py")
    assert [
        test.name for test in tests if f"`tests/architecture/{test.name}`" not in held and test.stem != "test_commits"
    ] == []


def test_named_contracts_exist_and_all_are_named(rules: dict[str, str], settings: dict[str, Any]) -> None:
    contracts = [contract["name"] for contract in settings["importlinter"]["contracts"]]
    named = {name for held in rules.values() for name in re.findall(r'"([^"]+)"', held)}
    assert len(named) > 8
    assert [name for name in named if not any(contract.startswith(name) for contract in contracts)] == []
    assert [contract for contract in contracts if not any(contract.startswith(name) for name in named)] == []


def test_named_rules_of_ruff_are_selected(rules: dict[str, str], settings: dict[str, Any]) -> None:
    selected = set(settings["ruff"]["lint"]["select"])
    named = {code for held in rules.values() for code in re.findall(r"`([A-Z]+\d*)`", held)}
    assert named
    assert [code for code in named if not any(code.startswith(each) for each in selected)] == []


def test_named_steps_of_lint_are_taken(root: Path, rules: dict[str, str]) -> None:
    taken = set(re.findall(r"^check ([\w-]+)", (root / "tools/lint").read_text(), re.MULTILINE))
    steps = {
        step
        for held in rules.values()
        for part in re.findall(r"lint ((?:`[\w-]+`(?:, )?)+)", held)
        for step in part.split(", ")
    }
    named = {step.strip("`; ") for step in steps} - {""}
    assert len(named) > 3
    assert named <= taken
