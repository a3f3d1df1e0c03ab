"""Callers can read every reason why a call may be refused."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

FAULTS = {
    "AlreadyExists",
    "Conflict",
    "DeadlineExceeded",
    "Forbidden",
    "InvalidRequest",
    "LimitReached",
    "NotFound",
    "OutOfRange",
    "Refused",
    "Unauthenticated",
    "Unavailable",
}
NOT_FOR_CALLERS = {
    "ACCOUNT_NOT_KNOWN",  # Drafts then says nothing about the account
    "MALFORMED_EVENT",  # operators see it
    "RULES_NOT_KNOWN",  # Drafts then saves without a check
    "WITHDRAWAL_NOT_CONFIRMED",  # Drafts makes WITHDRAW_PENDING of it
}


@pytest.fixture(scope="module")
def raised(modules: Mapping[Path, ast.Module], root: Path) -> dict[str, Path]:
    """Finds the reasons that stand in the code, and where."""
    places = root / "services", root / "libs/servicekit"
    code = {file: module for file, module in modules.items() if any(map(file.is_relative_to, places))}
    return {reason: file.relative_to(root) for file, module in code.items() for reason in reasons(module)}


def reasons(module: ast.Module) -> Iterator[str]:
    for call in ast.walk(module):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            given = call.args[:1] if call.func.id in FAULTS else []
            if call.func.id == "InvalidField":
                given = [word.value for word in call.keywords if word.arg == "reason"]
            yield from (each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str))


def test_every_reason_is_described_with_the_calls(root: Path, raised: dict[str, Path]) -> None:
    described = [*root.glob("protos/postflow/*/v1/*_service.proto"), root / "README.md"]
    named = {name for file in described for name in re.findall(r"`([A-Z_]+)`", file.read_text())}
    assert len(raised) > 30
    assert {reason: file for reason, file in raised.items() if reason not in named | NOT_FOR_CALLERS} == {}
