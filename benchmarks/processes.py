"""The processes of a stack, with the CPU time and memory of each."""

from collections.abc import Collection, Mapping
from typing import Self

from benchmarks.usage import cpu_seconds, memory_mb, resident_mb
from devstack.stack import Stack

SERVICES = ("schedule", "queue", "drafts", "publisher")
SANDBOX = "sandbox"
POSTGRESQL = "postgresql"


class Processes:
    """Reads the processes that a figure counts. The benchmark's own process is never among them."""

    def __init__(self, pids: Mapping[str, int], *, uncounted: Collection[int] = ()) -> None:
        """`uncounted` are backends of PostgreSQL, those of the benchmark itself; they must outlive the measurement."""
        self._pids = pids
        self._uncounted = uncounted

    @classmethod
    def of(cls, stack: Stack, *, uncounted: Collection[int] = (), others: Mapping[str, int] | None = None) -> Self:
        assert stack.postgres is not None
        assert stack.nats is not None
        pids = {name: stack.pid(name) for name in (*SERVICES, SANDBOX)}
        return cls(
            {**pids, POSTGRESQL: stack.postgres.pid, "nats": stack.nats.pid, **(others or {})}, uncounted=uncounted
        )

    def cpu(self) -> dict[str, float]:
        """Returns the seconds that each has used so far."""
        used = {name: cpu_seconds(pid) for name, pid in self._pids.items()}
        if POSTGRESQL in used:
            used[POSTGRESQL] -= sum(map(cpu_seconds, self._uncounted))
        return used

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        return {name: seconds - before[name] for name, seconds in self.cpu().items()}

    def memory(self) -> tuple[float, float]:
        """Returns megabytes with shared pages counted once, and by resident set size.

        PostgreSQL, whose processes share most pages, is counted the first way in both.
        """
        shared = sum(memory_mb(pid) for pid in self._pids.values())
        single = sum(resident_mb(pid) for name, pid in self._pids.items() if name != POSTGRESQL)
        return shared, single + memory_mb(self._pids[POSTGRESQL])
