"""Our folders: marked, private, and used by one process at a time."""

import fcntl
import os
import shutil
from pathlib import Path

from devstack.errors import FolderInUse, StackError, WrongSetting

LOCK = "lock"
MARKER = ".postflow-state"
MARKER_TEXT = "This folder belongs to `make run`: its databases, streams and keys. `make run ARGS=--reset` wipes it.\n"


class FolderLock:
    """Locks a folder by an open file, so that the kernel releases it however its holder ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def holder(self) -> str | None:
        """Returns the id of the process that holds the lock, as text, or None if it is free."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            # Shared: commands that look at the same moment do not see each other.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        finally:
            os.close(descriptor)
        return None

    def acquire(self) -> None:
        if self._descriptor is not None:
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise FolderInUse(
                f"{self._path.parent} is in use by process {holder or 'unknown'}: stop it, or choose another folder"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class StateFolder:
    """Folder of one stack. Nothing is ever deleted in a folder without our marker."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.lock = FolderLock(self.path)

    def open(self) -> None:
        try:
            self._open()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise WrongSetting(f"{self.path} cannot be used ({reason}): choose another folder by --state-dir") from None

    def check_unused(self) -> None:
        """Raises FolderInUse while another process uses the folder. Creates nothing."""
        if self._marked():
            self.lock.acquire()
            self.lock.release()

    def _open(self) -> None:
        private_folder(self.path)
        if not self._marked():
            if any(self.path.iterdir()):
                raise StackError(
                    f"{self.path} is not empty and not a PostFlow state folder: nothing was touched, choose another one"
                )
            (self.path / MARKER).write_text(MARKER_TEXT)
        self.lock.acquire()

    def wipe(self) -> None:
        """Deletes what an open folder holds. Marker, lock and the folder itself, which may be a mount point, stay."""
        assert self.lock.held
        for entry in self.path.iterdir():
            if entry.name not in {MARKER, LOCK}:
                remove(entry)

    def close(self) -> None:
        self.lock.release()

    def _marked(self) -> bool:
        return (self.path / MARKER).is_file()


def private_folder(path: Path) -> Path:
    """Creates the folder with mode 0700 if it is absent, and checks that it belongs to our user."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = path.stat().st_uid
    if owner != os.geteuid():
        raise StackError(
            f"{path} belongs to user id {owner}, not to {os.geteuid()}: run as that user, or choose another folder"
        )
    return path


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Writes the file with mode 0600 from the first byte on; it appears as a whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    partial.replace(path)
