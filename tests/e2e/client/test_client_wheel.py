"""`postflow-client` as another program meets it: alone in an environment of its own, against a real server."""

import json
import re
import subprocess
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from devstack.stack import Stack
from postflow.publisher.v1 import publisher_service_pb2
from postflow.queue.v1 import queue_service_pb2
from postflow.schedule.v1 import schedule_admin_service_pb2, schedule_service_pb2, schedule_service_pb2_grpc

ROOT = Path(__file__).parents[3]
NEEDED = ("grpc", "grpc_status", "google", "typing_extensions.py")
"""What the dependencies of the wheel install."""


@pytest.fixture(scope="module")
async def schedule(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    async with Stack(tmp_path_factory.mktemp("stack") / "state", services=("schedule",)) as stack:
        yield stack.targets["schedule"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([ROOT / "tools/client", folder], cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel and the locked packages that it depends on, and nothing else."""
    environment = tmp_path_factory.mktemp("client") / "venv"
    venv.create(environment, symlinks=True)
    (site,) = environment.glob("lib/python3*/site-packages")
    for package in NEEDED:
        (site / package).symlink_to(Path(sysconfig.get_path("purelib"), package))
    zipfile.ZipFile(wheel).extractall(site)  # All that an installer does with a pure wheel.
    return environment / "bin" / "python"


def _run(python: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False, timeout=60)


async def test_the_program_of_the_documents_runs(python: Path, schedule: str) -> None:
    program, _ = re.findall(r"```python\n(.+?)```", (ROOT / "docs/clients.md").read_text(), re.DOTALL)
    done = _run(python, program.replace("127.0.0.1:50051", schedule))
    assert done.stderr == ""
    stored, refused, reason, field = done.stdout.splitlines()
    assert stored == "stored: page-1, page-2, page-3"
    assert refused.startswith("INVALID_ARGUMENT: account_schedule.time_zone: ")
    assert reason == "  reason UNKNOWN_TIME_ZONE"
    assert field.startswith("  account_schedule.time_zone: ")


def test_the_wheel_brings_every_stub_and_nothing_of_the_services(wheel: Path, python: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"postflow", "postflow_client-0.1.0.dist-info"}
    stubs = [name for name in names if name.endswith(("_pb2.py", "_pb2_grpc.py"))]
    modules = ", ".join(name.removesuffix(".py").replace("/", ".") for name in stubs)
    assert len(stubs) == len(
        [*(ROOT / "libs/postflow").rglob("*_pb2.py"), *(ROOT / "libs/postflow").rglob("*_grpc.py")]
    )
    assert _run(python, f"import {modules}").stderr == ""
    for package in ("servicekit", "devstack", "queue_service"):
        assert "ModuleNotFoundError" in _run(python, f"import {package}").stderr


def test_the_client_is_released_with_the_services() -> None:
    product, client = (tomllib.loads((ROOT / path).read_text()) for path in ("pyproject.toml", "client/pyproject.toml"))
    assert client["project"]["version"] == product["project"]["version"]
    assert set(client["project"]["dependencies"]) <= set(product["project"]["dependencies"])


class _Flaky(grpc.GenericRpcHandler):
    """Answers every call with the codes given, one after the other, and the last one for good."""

    def __init__(self, *codes: grpc.StatusCode) -> None:
        self._codes = codes
        self.calls = 0

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        return grpc.unary_unary_rpc_method_handler(self._answer)

    def _answer(self, _request: bytes, context: grpc.ServicerContext) -> bytes:
        code = self._codes[min(self.calls, len(self._codes) - 1)]
        self.calls += 1
        if code is not grpc.StatusCode.OK:
            context.abort(code, "no")
        return b""


@pytest.fixture
def policy() -> str:
    return (ROOT / "client/service_config.json").read_text()


def _call(policy: str, flaky: _Flaky) -> grpc.StatusCode:
    server = grpc.server(ThreadPoolExecutor(1), handlers=[flaky])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.service_config", policy)]) as channel:
            stub = schedule_service_pb2_grpc.ScheduleServiceStub(channel)
            _, call = stub.GetAccountSchedule.with_call(schedule_service_pb2.GetAccountScheduleRequest())
            return call.code()
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    finally:
        server.stop(None)


def test_the_policy_repeats_what_is_unavailable_up_to_four_times(policy: str) -> None:
    flaky = _Flaky(grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.OK)
    assert (_call(policy, flaky), flaky.calls) == (grpc.StatusCode.OK, 3)
    flaky = _Flaky(grpc.StatusCode.UNAVAILABLE)
    assert (_call(policy, flaky), flaky.calls) == (grpc.StatusCode.UNAVAILABLE, 4)


@pytest.mark.parametrize("name", ["ABORTED", "ALREADY_EXISTS", "FAILED_PRECONDITION", "INTERNAL", "RESOURCE_EXHAUSTED"])
def test_the_policy_leaves_answers_alone(policy: str, name: str) -> None:
    flaky = _Flaky(grpc.StatusCode[name])
    assert (_call(policy, flaky), flaky.calls) == (grpc.StatusCode[name], 1)


def test_the_policy_names_methods_that_exist(policy: str) -> None:
    named = [name for config in json.loads(policy)["methodConfig"] for name in config["name"] if name]
    services = {
        service.full_name: service
        for file in (
            schedule_admin_service_pb2.DESCRIPTOR,
            queue_service_pb2.DESCRIPTOR,
            publisher_service_pb2.DESCRIPTOR,
        )
        for service in file.services_by_name.values()
    }
    assert [services[each["service"]].methods_by_name[each["method"]].name for each in named] == [
        "ApplyZoneChanges",
        "WatchQueue",
        "WatchPostJobs",
    ]


def test_the_policy_sets_no_deadline_for_streams(policy: str) -> None:
    (config,) = (
        each
        for each in json.loads(policy)["methodConfig"]
        if {"WatchQueue"} & {name.get("method") for name in each["name"]}
    )
    assert "timeout" not in config
