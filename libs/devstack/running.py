"""The record that a running stack keeps in its folder, by which other commands find its servers and settings."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from devstack.errors import StackError
from devstack.folders import FolderLock, write_private

RECORD = "running.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Contains passwords, so its file is private."""

    pid: int
    targets: Mapping[str, str]
    nats_url: str
    database_urls: Mapping[str, str]
    settings: Mapping[str, Mapping[str, str]]
    """The variables that each service is started with, by service."""

    def write(self, folder: Path) -> None:
        write_private(folder / RECORD, json.dumps(asdict(self), indent=1))


def find(folder: Path) -> Running:
    """Returns the record of the stack that runs in the folder; StackError if none does, or if it still starts."""
    pid = FolderLock(folder).holder()
    if pid is None:
        raise StackError(f"no stack runs in {folder}: start one with `make run`")
    try:
        return Running(**json.loads((folder / RECORD).read_text()))
    except FileNotFoundError:
        raise StackError(f"the stack in {folder} is still starting, or is stopping: process {pid}") from None


def forget(folder: Path) -> None:
    (folder / RECORD).unlink(missing_ok=True)
