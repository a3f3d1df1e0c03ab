import json
import socket
import subprocess
import sys

import pytest

from devstack.ports import EPHEMERAL_RANGE, LOWEST, free_port, is_free, split


def test_a_free_port_can_be_listened_on_and_is_not_given_twice() -> None:
    ports = {free_port() for _ in range(50)}
    assert len(ports) == 50
    assert all(is_free("127.0.0.1", port) for port in ports)


def test_two_processes_choose_from_different_ports() -> None:
    """A port is free for others, too, until somebody listens on it."""
    with _chooser() as one, _chooser() as other:
        first, second = _chosen(one), _chosen(other)
        assert len(set(first)) == len(set(second)) == 300
        assert not set(first) & set(second)
        one.communicate()
        other.communicate()


def _chooser(count: int = 300) -> subprocess.Popen[str]:
    program = f"""
import json
from devstack.ports import free_port
print(json.dumps([free_port() for _ in range({count})]), flush=True)
input()
"""
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _chosen(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    ports: list[int] = json.loads(process.stdout.readline())
    return ports


@pytest.mark.skipif(not EPHEMERAL_RANGE.exists(), reason="this kernel does not tell its range")
def test_a_free_port_lies_where_no_outgoing_connection_takes_it() -> None:
    assert free_port() < int(EPHEMERAL_RANGE.read_text().split()[0])


@pytest.mark.skipif(not EPHEMERAL_RANGE.exists(), reason="this kernel does not tell its range")
def test_a_process_that_has_given_all_its_ports_gives_the_oldest_again() -> None:
    """A long run starts more servers than its process has ports; most of them have ended since."""
    count = int(EPHEMERAL_RANGE.read_text().split()[0]) - LOWEST + 50
    with _chooser(count) as process:
        given = _chosen(process)
        process.communicate()
    assert max(given) < int(EPHEMERAL_RANGE.read_text().split()[0])
    different = len(set(given))
    assert len(set(given[:different])) == different


def test_a_port_with_a_listener_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert not is_free("127.0.0.1", listener.getsockname()[1])
    assert is_free("127.0.0.1", 0)


def test_a_listener_that_would_share_its_port_counts() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as listener:
        assert not is_free("127.0.0.1", listener.getsockname()[1])


def test_connections_that_linger_after_a_server_do_not_count() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            server, _ = listener.accept()
            server.close()  # closes first, so this side lingers
            assert client.recv(1) == b""
    assert is_free("127.0.0.1", port)


@pytest.mark.parametrize(
    ("address", "parts"),
    [("127.0.0.1:50051", ("127.0.0.1", 50051)), ("[::1]:80", ("::1", 80)), (":80", ("", 80))],
)
def test_an_address_splits_into_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert split(address) == parts
