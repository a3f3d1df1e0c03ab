import os
from pathlib import Path

import pytest

from devstack.errors import StackError
from devstack.folders import StateFolder
from devstack.running import RECORD, Running, find, forget

RECORDED = Running(
    pid=os.getpid(),
    targets={"queue": "127.0.0.1:50052"},
    nats_url="nats://127.0.0.1:4222",
    database_urls={"queue": "postgresql://queue:secret@127.0.0.1/queue"},
    settings={"queue": {"POSTFLOW_QUEUE_LISTEN": "127.0.0.1:50052"}},
)


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    state = StateFolder(tmp_path / "state")
    state.open()
    return state


def test_a_stack_that_runs_is_found_by_its_private_record(folder: StateFolder) -> None:
    RECORDED.write(folder.path)
    assert find(folder.path) == RECORDED
    assert (folder.path / RECORD).stat().st_mode & 0o777 == 0o600


def test_the_record_of_a_killed_stack_is_ignored(folder: StateFolder) -> None:
    RECORDED.write(folder.path)
    folder.close()
    with pytest.raises(StackError, match="no stack runs in"):
        find(folder.path)


def test_a_stack_that_starts_or_stops_has_no_record(folder: StateFolder) -> None:
    RECORDED.write(folder.path)
    forget(folder.path)
    forget(folder.path)
    with pytest.raises(StackError, match="is still starting, or is stopping"):
        find(folder.path)


def test_a_folder_without_a_stack_is_named(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=f"no stack runs in {tmp_path}"):
        find(tmp_path)
