"""A module's tests carry its name, so that the tests of `claim_jobs.py` are found at once."""

from pathlib import Path

import pytest

# Where the tests of a layer are.
TIERS = {"application": ("usecase",), "domain": ("unit",), "engine": ("unit", "usecase")}
# The layers whose tests are named after their modules, and the services in which they are.
NAMED = {
    "application": ("drafts", "publisher", "queue", "schedule"),
    "domain": ("drafts", "publisher", "queue", "schedule"),
    "engine": ("publisher", "schedule"),
}


@pytest.mark.parametrize(("layer", "service"), [(layer, service) for layer in NAMED for service in NAMED[layer]])
def test_every_module_has_a_test_file_of_its_name(root: Path, layer: str, service: str) -> None:
    """The file is `test_<module>.py`, or `test_<module>_<aspect>.py`. A module without a function needs none."""
    package = f"{service}_service"
    files = (root / "services" / service / package / layer).rglob("*.py")
    modules = {file.stem for file in files if "def " in file.read_text()}
    tests = {test.stem for tier in TIERS[layer] for test in (root / "tests" / tier / package).rglob("test_*.py")}
    assert modules
    assert sorted(module for module in modules if not any(_is_about(test, module) for test in tests)) == []


def test_no_test_file_has_more_than_400_lines(root: Path) -> None:
    tests = list((root / "tests").rglob("test_*.py"))
    assert len(tests) > 200
    assert [str(test.relative_to(root)) for test in tests if len(test.read_text().splitlines()) > 400] == []


def _is_about(test: str, module: str) -> bool:
    return test == f"test_{module}" or test.startswith(f"test_{module}_")
