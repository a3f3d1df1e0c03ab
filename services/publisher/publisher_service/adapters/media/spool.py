"""Files on the local disk while they are used: private, always deleted, bounded in all and per organization."""

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

T = TypeVar("T")

_PREFIX: Final = "postflow-media-"
# The disk is not waited for in the event loop: posts are due there.
_THREADS: Final = 4


class SpoolFull(Exception):
    """No room is left, in all or for this organization, or the disk fails."""


class Room:
    """Bytes that may be used, and how many of them by one organization."""

    def __init__(self, total: int, *, share: int) -> None:
        self.free = total
        self._share = share
        self._used: Counter[str] = Counter()

    def take(self, organization_id: str, size: int) -> None:
        """Raises SpoolFull."""
        if size > self.free or self._used[organization_id] + size > self._share:
            raise SpoolFull
        self.free -= size
        self._used[organization_id] += size

    def give_back(self, organization_id: str, size: int) -> None:
        self.free += size
        self._used[organization_id] -= size
        if not self._used[organization_id]:
            del self._used[organization_id]


class Spool:
    """Makes a folder of its own at its first file, in `parent` or else where temporary files are.

    A process that was killed leaves its folder behind: the next one that makes its own there deletes it.
    """

    def __init__(self, room: Room, *, parent: Path | None = None) -> None:
        self._room = room
        self._parent = parent
        self._folder: asyncio.Future[Folder] | None = None
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="media spool")
        self._is_closed = False

    @asynccontextmanager
    async def file(self, organization_id: str) -> AsyncIterator["SpoolFile"]:
        """Yields a file, which is made with its first bytes, and deleted at the end."""
        file = SpoolFile(self, organization_id)
        try:
            yield file
        finally:
            await self._delete(file, organization_id)

    async def run(self, work: Callable[[], T]) -> T:
        """Runs what waits for the disk. Raises SpoolFull for errors of the disk."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except OSError:
            raise SpoolFull from None

    def take(self, organization_id: str, size: int) -> None:
        self._room.take(organization_id, size)

    async def close(self) -> None:
        """Deletes the folder. Files that are still open go with it."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._folder is not None:
            with suppress(OSError, SpoolFull):
                await self.run((await self._folder).delete)
        self._threads.shutdown(wait=False)

    async def folder(self) -> "Folder":
        """Returns the folder of this process. Raises SpoolFull."""
        if self._folder is None or (self._folder.done() and self._folder.exception()):
            parent = self._parent or Path(tempfile.gettempdir())
            self._folder = asyncio.get_running_loop().run_in_executor(self._threads, lambda: make_folder(parent))
        try:
            # It is made for the others, too.
            return await asyncio.shield(self._folder)
        except OSError:
            raise SpoolFull from None

    async def _delete(self, file: "SpoolFile", organization_id: str) -> None:
        """Deletes a file, even if this is canceled. The room is given back once the bytes are gone."""
        if self._is_closed:
            file.delete()
            return
        deleting = asyncio.get_running_loop().run_in_executor(self._threads, file.delete)
        deleting.add_done_callback(lambda _: self._room.give_back(organization_id, file.size))
        await asyncio.shield(deleting)


class SpoolFile:
    """A file that is written once and then read. `size` is the room that it has taken."""

    def __init__(self, spool: Spool, organization_id: str) -> None:
        self.path = Path()
        self.size = 0
        self._spool = spool
        self._organization_id = organization_id
        self._digest = hashlib.sha256()
        self._file: int | None = None
        # A thread may still be at work when a canceled task deletes the file: its number then means another one.
        self._at_work = Lock()
        self._is_deleted = False

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    async def append(self, piece: bytes | bytearray) -> None:
        """Writes and hashes. Raises SpoolFull, also if the disk is full."""
        self._spool.take(self._organization_id, len(piece))
        self.size += len(piece)
        folder = await self._spool.folder()
        await self._spool.run(lambda: self._append(folder, piece))

    async def read(self, offset: int, length: int) -> bytes:
        return await self.run(lambda file: os.pread(file, length, offset))

    async def run(self, work: Callable[[int], T]) -> T:
        """Runs what works at the file, by its number."""
        return await self._spool.run(lambda: self._work(work))

    def delete(self) -> None:
        with self._at_work:
            self._is_deleted = True
            if self._file is not None:
                os.close(self._file)
                self.path.unlink(missing_ok=True)

    def _append(self, folder: "Folder", piece: bytes | bytearray) -> None:
        with self._at_work:
            if self._is_deleted:
                raise SpoolFull  # nobody waits for this any more
            if self._file is None:
                self._file, name = tempfile.mkstemp(dir=folder.path)  # 0600
                self.path = Path(name)
            self._digest.update(piece)
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(self._file, rest) :]

    def _work(self, work: Callable[[int], T]) -> T:
        with self._at_work:
            if self._is_deleted or self._file is None:
                raise SpoolFull
            return work(self._file)


class Folder:
    """A folder that only this process uses; a lock on it says that the process lives."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    def delete(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def make_folder(parent: Path) -> Folder:
    """Makes a folder, and deletes those of processes that are gone."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in parent.glob(f"{_PREFIX}*"):
        _delete_if_left(left)
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))  # 0700
        # Another process may take it for one that was left behind, until it is locked.
        if (lock := _locked(path)) is not None and path.exists():
            return Folder(path, lock)


def _delete_if_left(path: Path) -> None:
    with suppress(OSError):  # another process deletes it
        if path.stat(follow_symlinks=False).st_uid == os.getuid() and (lock := _locked(path)) is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _locked(path: Path) -> int | None:
    """Returns the lock on a folder; None if another process has it, or the folder is gone."""
    with suppress(OSError):
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError:
            os.close(lock)
    return None
