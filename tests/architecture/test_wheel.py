"""The wheel that production installs: complete, and without anything of development."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

NOT_IN_PRODUCTION = {"devstack", "testkit", "tests", "benchmarks"}
SERVICES = ("schedule", "queue", "drafts", "publisher")


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=root,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    wheel.extractall(folder)
    return folder


def _run(installed: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Runs with the wheel and its dependencies. Without `site` no .pth file leads to the source folders."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{installed}:{sysconfig.get_path('purelib')}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, cwd=installed, capture_output=True, text=True, check=False
    )


def test_the_wheel_holds_nothing_of_development(wheel: zipfile.ZipFile) -> None:
    names = [Path(name) for name in wheel.namelist()]
    assert {name.parts[0] for name in names} & NOT_IN_PRODUCTION == set()
    assert [str(name) for name in names if "examples" in name.parts or name.name.startswith("test_")] == []


def test_every_service_and_the_postflow_command_load_from_the_wheel(installed: Path) -> None:
    modules = ", ".join(f"{service}_service.main" for service in SERVICES)
    done = _run(
        installed, f"import {modules}, postflow_cli.main, importlib.util as u; assert not u.find_spec('devstack')"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_wheel_has_the_templates_of_every_mail(installed: Path) -> None:
    done = _run(
        installed,
        "from publisher_service.adapters.mail.composing import _environment as made\n"
        "from publisher_service.domain.notification import NotificationKind as Kind\n"
        "[made().get_template(f'{kind.lower()}.{form}.j2') for kind in Kind for form in ('txt', 'html')]",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_operators_find_every_command_in_the_wheel(wheel: zipfile.ZipFile, installed: Path) -> None:
    (entry_points,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    commands = dict(
        line.split(" = ")
        for line in wheel.read(entry_points).decode().splitlines()
        if "_service.main:" in line or "postflow_cli." in line
    )
    assert set(commands) == {"postflow", "postflow-migrate", *(f"postflow-{service}" for service in SERVICES)}
    for arguments in (
        ["version"],
        *([name, "--help"] for name in ("migrate", "streams", "stats", "dead-letters", "mailbox")),
    ):
        done = _run(
            installed, f"import sys; sys.argv = ['postflow', *{arguments}]; from postflow_cli.main import main; main()"
        )
        assert done.returncode == 0, done.stderr
    assert (
        "{drafts,publisher,queue,schedule,all}"
        in _run(
            installed,
            "import sys; sys.argv = ['postflow-migrate', '-h']; from postflow_cli.migrate import main; main()",
        ).stdout
    )


def test_the_wheel_carries_the_licence(wheel: zipfile.ZipFile) -> None:
    metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    headers = HeaderParser().parsestr(wheel.read(metadata).decode())
    assert headers["License-Expression"] == "Apache-2.0"
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_does_not_load_what_only_development_needs(service: str) -> None:
    """nats-py would load aiohttp where it is installed: 14.5 MB in each process, for nothing."""
    code = f"import sys, {service}_service.main; sys.exit(sys.modules.get('aiohttp') is not None)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
