"""Looks for texts in all that a stack has written: files of its servers, mails, lines of its processes, metrics."""

import asyncio
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from devstack.stack import Stack


async def places(stack: Stack, texts: Sequence[str]) -> Mapping[str, set[str]]:
    """Returns where each of the texts stands: a first folder of the stack's state, a process, or `metrics`."""
    return await asyncio.to_thread(_places, stack, [text.encode() for text in texts])


def _places(stack: Stack, texts: Sequence[bytes]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {text.decode(): set() for text in texts}
    for name, content in _written(stack):
        for text in texts:
            if text in content:
                found[text.decode()].add(name)
    return found


def _written(stack: Stack) -> Sequence[tuple[str, bytes]]:
    lines = [(process, "\n".join(stack.output(process)).encode()) for process in stack.processes]
    metrics = [("metrics", _metrics(address)) for address in stack.metrics.values()]
    files = [
        (file.relative_to(stack.state.path).parts[0], _content(file))
        for file in stack.state.path.rglob("*")
        if file.is_file()
    ]
    return [*lines, *metrics, *files]


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:  # the servers work on: they remove files, too
        return b""


def _metrics(address: str) -> bytes:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        content: bytes = answer.read()
        return content
