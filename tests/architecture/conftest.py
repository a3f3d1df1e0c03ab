"""Fixtures of the architecture tests: the checkout as it stands, read without running it."""

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVICES = ("drafts", "publisher", "queue", "schedule")
SKIPPED = frozenset({"__pycache__", "build", "dist", "out"})


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def files() -> list[Path]:
    """Lists what is or may become part of the repository, without git, which refuses another user's checkout."""
    found: list[Path] = [ROOT / ".gitignore"]
    folders = [ROOT]
    while folders:
        for entry in folders.pop().iterdir():
            if entry.name in SKIPPED or (entry.name.startswith(".") and entry.name != ".ci"):
                continue
            if entry.is_dir():
                folders.append(entry)
            else:
                found.append(entry)
    return sorted(found)


@pytest.fixture(scope="session")
def modules(files: list[Path]) -> Mapping[Path, ast.Module]:
    """Parses the Python that people write."""
    return {
        file: ast.parse(file.read_text(), str(file))
        for file in files
        if file.suffix == ".py" and not file.is_relative_to(ROOT / "libs/postflow")
    }


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def package(service: str) -> Path:
    return ROOT / "services" / service / f"{service}_service"
