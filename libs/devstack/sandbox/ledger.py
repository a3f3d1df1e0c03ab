"""Memory of the sandbox provider: an append-only file of JSON lines, one for each effect and each request's outcome.

A line is in the file before the client gets its answer, so the file is the truth about what happened.
"""

import fcntl
import json
import os
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path

from devstack.errors import FolderInUse

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
CHUNK = 1 << 20


class Ledger:
    """Appends and reads lines, numbered from 1 (`seq`)."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise FolderInUse(f"{path} is in use by another sandbox provider") from None
        self._ends = array("Q", [0])
        self._unwritten: list[bytes] = []
        self._index()

    @property
    def length(self) -> int:
        return len(self._ends) - 1

    def append(self, entry: Mapping[str, object]) -> int:
        """Returns the number of the new line, which the next `flush` writes."""
        seq = len(self._ends)
        line = (_encode({"seq": seq, **entry}) + "\n").encode()
        self._unwritten.append(line)
        self._ends.append(self._ends[-1] + len(line))
        return seq

    def flush(self) -> None:
        data = memoryview(b"".join(self._unwritten))
        self._unwritten.clear()
        while data:
            data = data[os.write(self._file, data) :]

    def read(self, seq: int) -> dict[str, object] | None:
        if not 1 <= seq <= self.length:
            return None
        entry: dict[str, object] = json.loads(self._between(seq - 1, seq))
        return entry

    def since(self, seq: int, limit: int) -> bytes:
        """Returns at most `limit` lines that follow that number."""
        first = min(max(seq, 0), self.length)
        return self._between(first, min(first + limit, self.length))

    def entries(self) -> Iterator[dict[str, object]]:
        for seq in range(1, self.length + 1):
            entry = self.read(seq)
            assert entry is not None
            yield entry

    def close(self) -> None:
        if self._file >= 0:
            self.flush()
            os.close(self._file)
            self._file = -1

    def _between(self, first: int, last: int) -> bytes:
        self.flush()
        start = self._ends[first]
        return os.pread(self._file, self._ends[last] - start, start)

    def _index(self) -> None:
        position = 0
        while chunk := os.pread(self._file, CHUNK, position):
            found = chunk.find(b"\n")
            while found >= 0:
                self._ends.append(position + found + 1)
                found = chunk.find(b"\n", found + 1)
            position += len(chunk)
        if position > self._ends[-1]:
            # A write was cut short; its client has had no answer.
            os.ftruncate(self._file, self._ends[-1])
