"""Free ports that stay free while their server restarts: below the range for outgoing connections."""

import errno
import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

LOWEST = 20_000
SHARES = 16
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
# In the order in which they were given.
_given: dict[int, None] = {}


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port that this process has not given yet; once all were given, the one given longest ago."""
    share = _share()
    fresh = [port for port in share if port not in _given]
    for port in [*random.sample(fresh, k=len(fresh)), *_given]:
        if port in share and _binds(host, port, reuse=False):
            _given.pop(port, None)
            _given[port] = None
            return port
    return _any_port(host)


def is_free(host: str, port: int) -> bool:
    """Returns whether a server could listen here now, in spite of connections that linger after an earlier server."""
    return port == 0 or _binds(host, port, reuse=True)


def split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


@cache
def _share() -> range:
    """Returns the part of the range that this process has to itself for as long as it lives.

    Another process would find a port free between its choice and its use, and while its server restarts. When every
    part is taken, the range is shared.
    """
    whole = range(LOWEST, _ephemeral_start())
    size = len(whole) // SHARES
    for number in range(SHARES):
        if _reserves(Path(tempfile.gettempdir(), f"postflow-ports-{number}")):
            return whole[number * size : (number + 1) * size]
    return whole


def _reserves(file: Path) -> bool:
    """Takes a lock that the kernel releases when this process ends; returns whether it was free."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return False  # It belongs to another user.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return False
    return True


def _ephemeral_start() -> int:
    try:
        start = int(EPHEMERAL_RANGE.read_text().split()[0])
    except OSError:
        start = 32_768
    return start if start > LOWEST + 1_000 else 32_768


def _binds(host: str, port: int, *, reuse: bool) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        if reuse:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def _any_port(host: str) -> int:
    with socket.socket() as listener:
        listener.bind((host, 0))
        port: int = listener.getsockname()[1]
        return port
