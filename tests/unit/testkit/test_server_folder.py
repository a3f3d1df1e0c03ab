from pathlib import Path

from devstack.folders import FolderLock
from testkit.server_folder import PREFIX, server_folder

NOTHING = 1


def test_servers_keep_their_data_in_memory(tmp_path: Path) -> None:
    with server_folder(tmp_path, room=NOTHING) as folder:
        assert folder.parent == tmp_path
        (folder / "data").mkdir()
    assert not folder.exists()


def test_data_goes_to_disk_if_memory_has_no_room(tmp_path: Path) -> None:
    for memory in (tmp_path, tmp_path / "absent"):
        with server_folder(memory, room=2**63) as folder:
            assert folder.is_dir()
            assert folder.parent != tmp_path
        assert not folder.exists()


def test_the_next_session_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    left = tmp_path / f"{PREFIX}left"
    (left / "data").mkdir(parents=True)
    lock = FolderLock(left)
    lock.acquire()
    lock.release()
    with server_folder(tmp_path, room=NOTHING):
        assert not left.exists()


def test_other_sessions_and_other_folders_are_left_alone(tmp_path: Path) -> None:
    just_made, another = tmp_path / f"{PREFIX}new", tmp_path / "another"
    just_made.mkdir()
    another.mkdir()
    with server_folder(tmp_path, room=NOTHING) as running:
        with server_folder(tmp_path, room=NOTHING):
            assert running.is_dir()
        assert running.is_dir()
    assert just_made.is_dir()
    assert another.is_dir()
