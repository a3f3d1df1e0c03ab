"""No file holds what must not stand in a repository, and scripts can be run."""

import re
import subprocess
from pathlib import Path

import pytest

TEXT = {"", ".cfg", ".ini", ".in", ".json", ".md", ".proto", ".py", ".pyi", ".sh", ".toml", ".txt", ".yaml", ".yml"}
# Put together here, so that this file passes its own test.
REGISTRIES = "|".join(("pypi" + r"\.org", "python" + "hosted", "registry" + r"\.npmjs", r"deb\." + "debian"))
MACHINE = r"(?<![\w./-])/(?:home|root|work|Users)/\w+"
SECRET = "|".join(
    (
        "-----BEGIN" + r" [A-Z ]*PRIVATE KEY",
        r"\bAKIA[0-9A-Z]{16}\b",
        r"\bgh[pousr]_[A-Za-z0-9]{36}",
        r"\bxox[abprs]-[A-Za-z0-9-]{20}",
        r"\bsk_live_[A-Za-z0-9]{16}",
        r"\beyJ[A-Za-z0-9_-]{20,}\.eyJ",
    )
)
LEFT_OPEN = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"))


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("the host of a package registry", REGISTRIES),
        ("a path of one machine", MACHINE),
        ("a secret", SECRET),
        ("something left open", rf"\b(?:{LEFT_OPEN})\b"),
    ],
)
def test_no_file_names(root: Path, files: list[Path], what: str, pattern: str) -> None:
    forbidden = re.compile(pattern)
    # The lock file says where each wheel comes from: that is what it is for.
    read = [file for file in files if file.suffix in TEXT and file.name != "uv.lock"]
    found = [
        f"{file.relative_to(root)}:{number}"
        for file in read
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if forbidden.search(line)
    ]
    assert found == [], f"{what} stands in {found}"


SCRIPTS = ("bootstrap", "breaking", "client", "generate", "lint")


@pytest.mark.parametrize("script", [".ci/run", *(f"tools/{name}" for name in SCRIPTS)])
def test_a_script_can_be_run_and_is_valid_shell(root: Path, script: str) -> None:
    assert (root / script).stat().st_mode & 0o111
    shell = (root / script).read_text().splitlines()[0].removeprefix("#!").split()
    assert subprocess.run([*shell, "-n", root / script], check=False).returncode == 0
