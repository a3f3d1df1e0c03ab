"""The contracts of pyproject.toml hold, are complete, and refuse what they forbid."""

import os
import re
import shutil
import subprocess
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

LINT_IMPORTS = Path(sysconfig.get_path("scripts"), "lint-imports")
CALLS = {
    "queue": {"schedule", "drafts", "publisher"},
    "drafts": {"schedule", "publisher"},
    "schedule": set[str](),
    "publisher": set[str](),
}
"""Which services each service may call; there is no cycle."""
OFFENCES: dict[str, list[str]] = {
    "services/queue/queue_service/domain/slot.py": ["sqlalchemy", "servicekit.clock", "jobkit.job"],
    "services/drafts/drafts_service/wire/drafts.py": ["schedule_service.wire"],
    "services/drafts/drafts_service/helpers.py": [],
    "services/drafts/drafts_service/domain/draft.py": ["drafts_service.wire"],
    "services/schedule/schedule_service/application/timers/get_timer.py": ["postflow.schedule.v1.timer_service_pb2"],
    "services/publisher/publisher_service/adapters/vault.py": ["postflow.drafts.v1.drafts_service_pb2_grpc"],
    "services/schedule/schedule_service/application/calendars/get_schedule_rule.py": ["jobkit.job"],
    "services/schedule/schedule_service/engine/timer_store.py": ["schedule_service.domain.calendars.window_state"],
    "services/schedule/schedule_service/main.py": ["devstack.stack", "postflow.queue.v1.queue_service_pb2_grpc"],
    "services/drafts/drafts_service/adapters/publisher_client.py": ["postflow.queue.v1.queue_service_pb2"],
    "libs/servicekit/run/loops.py": ["queue_service.main"],
    "libs/servicekit/rpc/edge.py": ["postflow.queue.v1.queue_slot_pb2", "servicekit.pg.database"],
    "libs/servicekit/clock.py": ["servicekit.run.loops"],
    "libs/servicekit/bus/pull.py": ["postflow.ops.v1.operations_service_pb2"],
    "libs/devstack/servers/nats.py": ["devstack.sandbox.client"],
    "libs/civil/days.py": ["servicekit.clock"],
    "libs/jobkit/settlement.py": ["jobkit.stores.memory"],
    "libs/jobkit/stores/sql.py": ["servicekit.pg.database"],
}
REFUSED = (
    "The services never import each other",
    "Inside a service every module has its layer",
    "The domain is pure",
    "Use cases speak no protobuf",
    "Schedule calls nobody",
    "Schedule's calendars know nothing",
    "Schedule's timers know nothing",
    "Publisher calls nobody",
    "Drafts does not call Queue",
    "Libraries know no service",
    "Services run without the development stack",
    "devstack: commands run a stack",
    "Libraries are independent",
    "jobkit stands on civil alone",
    "jobkit: rules know no store",
    "servicekit knows no contract",
    "servicekit: only ops serves",
    "servicekit: messaging joins database and stream",
    "servicekit: calls know neither",
)


@pytest.fixture(scope="module")
def settings(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def contracts(settings: dict[str, Any]) -> list[dict[str, Any]]:
    return list(settings["tool"]["importlinter"]["contracts"])


def test_every_import_contract_holds(root: Path) -> None:
    done = lint_imports(root)
    assert done.returncode == 0, done.stdout


def test_every_package_is_under_contract(root: Path, settings: dict[str, Any]) -> None:
    packages = {folder.name for folder in (root / "libs").iterdir() if (folder / "__init__.py").exists()}
    packages |= {folder.parent.name for folder in (root / "services").glob("*/*/__init__.py")}
    assert set(settings["tool"]["importlinter"]["root_packages"]) == packages


def test_every_package_but_those_of_development_is_installed(root: Path, settings: dict[str, Any]) -> None:
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    roots = set(settings["tool"]["importlinter"]["root_packages"])
    assert {Path(package).name for package in wheel} == roots - {"devstack", "testkit"}
    assert all((root / package / "py.typed").exists() or "_service" in package for package in wheel)


def test_a_service_is_called_only_by_those_who_may(root: Path, contracts: list[dict[str, Any]], service: str) -> None:
    wanted = set()
    for proto in (root / "protos/postflow").rglob("*.proto"):
        context = proto.relative_to(root / "protos/postflow").parts[0]
        speaks = re.search(r"^service ", proto.read_text(), re.MULTILINE)
        if speaks and context in CALLS and context != service and context not in CALLS[service]:
            module = ".".join(proto.relative_to(root / "protos").with_suffix("").parts)
            wanted |= {f"{module}_pb2", f"{module}_pb2_grpc"}
    assert wanted <= forbidden_to(contracts, f"{service}_service")


def test_other_services_are_called_from_adapters_alone(root: Path, service: str) -> None:
    package = root / "services" / service / f"{service}_service"
    stubs = re.compile(r"^\s*(?:from|import) postflow\.(?!" + service + r"\b)(\w+)\.[^\n]*_pb2_grpc\b", re.MULTILINE)
    callers = {
        (str(file.relative_to(package).parts[0]), context)
        for file in package.rglob("*.py")
        for context in stubs.findall(file.read_text())
    }
    assert {layer for layer, _ in callers} <= {"adapters"}
    assert {context for _, context in callers} <= CALLS[service]


def test_the_domain_knows_only_the_pure_libraries(
    root: Path, settings: dict[str, Any], contracts: list[dict[str, Any]]
) -> None:
    parts = {entry.stem for entry in (root / "libs/servicekit").iterdir() if entry.suffix == ".py" or entry.is_dir()}
    parts -= {"__init__", "__pycache__", "faults", "record", "versions"}
    packages = {each for each in settings["tool"]["importlinter"]["root_packages"] if not each.endswith("_service")}
    unknown = packages - {"civil", "channels", "servicekit"} | {f"servicekit.{part}" for part in parts}
    for package in (f"{service}_service" for service in CALLS):
        assert unknown <= forbidden_to(contracts, f"{package}.domain") | forbidden_to(contracts, package)


def test_servicekit_may_know_no_contract_but_envelope_and_field_rules(
    root: Path, contracts: list[dict[str, Any]]
) -> None:
    """The operations service, which every process serves, is known to `servicekit.ops` alone."""
    contexts = {folder.name for folder in (root / "protos/postflow").iterdir()} - {"bus", "rules"}
    assert {f"postflow.{context}" for context in contexts - {"ops"}} <= forbidden_to(contracts, "servicekit")
    parts = {entry.stem for entry in (root / "libs/servicekit").iterdir() if entry.suffix == ".py" or entry.is_dir()}
    for part in parts - {"__init__", "__pycache__", "backbone", "ops"}:
        assert "postflow.ops" in forbidden_to(contracts, f"servicekit.{part}")


def test_what_the_contracts_forbid_is_refused(root: Path, tmp_path: Path) -> None:
    for folder in ("libs", "services"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    for module, lines in OFFENCES.items():
        with (tmp_path / module).open("a") as file:
            file.write("\n" + "\n".join(f"import {line}" for line in lines) + "\n")
    report = " ".join(lint_imports(tmp_path).stdout.split())
    kept, broken = report.split("Broken contracts")
    assert [contract for contract in REFUSED if not re.search(rf"{re.escape(contract)}[^.]*? BROKEN", kept)] == []
    for module, lines in OFFENCES.items():
        offender = ".".join(Path(module).with_suffix("").parts[-3:])
        assert offender.split(".", 1)[1] in broken, f"{offender} {lines}"


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    sources = [root / "libs", *sorted((root / "services").iterdir())]
    return subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache", "--config", root / "pyproject.toml"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": ":".join(map(str, sources))},
        capture_output=True,
        text=True,
        check=False,
    )


def forbidden_to(contracts: list[dict[str, Any]], module: str) -> set[str]:
    return {
        name
        for contract in contracts
        if contract["type"] == "forbidden" and module in contract["source_modules"]
        for name in contract["forbidden_modules"]
    }
