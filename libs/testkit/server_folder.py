"""Provides a folder for the data of a session's servers: in memory, if there is room.

Creating or dropping a database touches three hundred files; on a disk that takes most of the time of a small test.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from devstack.errors import FolderInUse
from devstack.folders import LOCK, FolderLock

MEMORY = Path("/dev/shm")  # noqa: S108 - the name of the folder made there is random
ROOM = 2 * 1024**3
PREFIX = "postflow-test-"


@contextmanager
def server_folder(memory: Path = MEMORY, *, room: int = ROOM) -> Iterator[Path]:
    """Makes the folder and deletes it at the end; if this session is killed, the next one deletes it."""
    parent = memory if _has_room(memory, room) else Path(tempfile.gettempdir())
    _remove_leftovers(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    lock = FolderLock(folder)
    lock.acquire()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        lock.release()


def _has_room(folder: Path, room: int) -> bool:
    """Returns False for a memory file system that is too small; a container often has 64 MB."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK) and found.f_bavail * found.f_frsize >= room


def _remove_leftovers(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        # A folder without a lock is being made right now.
        if (folder / LOCK).exists() and os.access(folder / LOCK, os.W_OK):
            lock = FolderLock(folder)
            # The lock is held, or another session has removed the folder.
            with suppress(FolderInUse, FileNotFoundError):
                lock.acquire()
                shutil.rmtree(folder, ignore_errors=True)
            lock.release()
