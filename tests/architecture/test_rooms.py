"""A module's tests carry its name, so that the tests of `claim_jobs.py` are found at once."""

from pathlib import Path

import pytest

# The services whose tests are named after their modules.
NAMED = ("publisher",)


@pytest.mark.parametrize("service", NAMED)
@pytest.mark.parametrize(("layer", "tier"), [("application", "usecase"), ("domain", "unit")])
def test_every_module_has_a_test_file_of_its_name(root: Path, service: str, layer: str, tier: str) -> None:
    """The file is `test_<module>.py`, or `test_<module>_<aspect>.py`. A module without a function needs none."""
    package = f"{service}_service"
    files = (root / "services" / service / package / layer).glob("*.py")
    modules = {file.stem for file in files if "def " in file.read_text()}
    tests = [file.stem for file in (root / "tests" / tier / package).glob("test_*.py")]
    assert modules
    assert sorted(module for module in modules if not any(_is_about(test, module) for test in tests)) == []


@pytest.mark.parametrize("service", NAMED)
def test_no_test_file_has_more_than_400_lines(root: Path, service: str) -> None:
    tests = (root / "tests").glob(f"*/{service}_service/test_*.py")
    assert [str(test.relative_to(root)) for test in tests if len(test.read_text().splitlines()) > 400] == []


def _is_about(test: str, module: str) -> bool:
    return test == f"test_{module}" or test.startswith(f"test_{module}_")
