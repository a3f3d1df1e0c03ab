import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from devstack.errors import FolderInUse, StackError
from devstack.folders import FolderLock, StateFolder, private_folder, write_private


def _opened(path: Path) -> StateFolder:
    folder = StateFolder(path)
    folder.open()
    return folder


def test_a_new_folder_is_private_and_marked(tmp_path: Path) -> None:
    folder = _opened(tmp_path / "deep" / "state")
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert {entry.name for entry in folder.path.iterdir()} == {".postflow-state", "lock"}
    folder.close()


def test_a_folder_opens_again_and_keeps_what_it_holds(tmp_path: Path) -> None:
    _opened(tmp_path / "state").close()
    (tmp_path / "state" / "data").write_text("kept")
    _opened(tmp_path / "state").close()
    assert (tmp_path / "state" / "data").read_text() == "kept"


def test_a_folder_with_other_contents_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StackError, match="not a PostFlow state folder"):
        _opened(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_wiping_leaves_the_folder_and_its_marker(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    folder = _opened(tmp_path / "state")
    (folder.path / "data").mkdir()
    (folder.path / "data" / "file").write_text("gone")
    (folder.path / "link").symlink_to(outside)

    folder.wipe()
    folder.close()

    assert {entry.name for entry in folder.path.iterdir()} == {".postflow-state", "lock"}
    assert (outside / "precious").read_text() == "kept"


def test_a_second_user_of_the_folder_learns_which_process_has_it(tmp_path: Path) -> None:
    first = _opened(tmp_path / "state")
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
        _opened(tmp_path / "state")
    first.close()
    _opened(tmp_path / "state").close()


def test_a_killed_holder_does_not_keep_the_folder_locked(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from devstack.folders import StateFolder\n"
    code += "StateFolder(Path(sys.argv[1])).open(); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "state")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(FolderInUse, match=f"in use by process {holder.pid}"):
            _opened(tmp_path / "state")
        holder.kill()
    _opened(tmp_path / "state").close()


def test_a_lock_is_taken_and_released_any_number_of_times(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    for _ in range(2):
        lock.acquire()
        lock.acquire()
        assert lock.held
        lock.release()
        lock.release()
        assert not lock.held


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, -1)
    with pytest.raises(StackError, match="belongs to user id 65534"):
        private_folder(tmp_path)


def test_a_private_file_is_private_and_replaced_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    (tmp_path / "secret.partial").write_text("left by a crash")
    for text in ("one", "two"):
        write_private(file, text)
        assert file.read_text() == text
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_a_folder_that_cannot_be_created_is_reported_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StackError, match=r"cannot be used \(not a directory\): choose another folder by --state-dir"):
        StateFolder(tmp_path / "file" / "state").open()
