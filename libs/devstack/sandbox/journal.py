"""The journal of the sandbox provider: what it writes down, and the answers that wait until it is written."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime

from devstack.sandbox.calls import Call
from devstack.sandbox.faults import Fault
from devstack.sandbox.ledger import Ledger
from servicekit.clock import Clock


class Journal:
    """The ledger with the provider's clock. Requests of one turn of the loop share a write."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self.ledger = ledger
        self._clock = clock
        self._answers: list[Callable[[], None]] = []
        self._is_closed = False

    def now(self) -> datetime:
        return self._clock.now()

    def time(self) -> str:
        return self._clock.now().isoformat(timespec="microseconds")

    def write(self, entry: Mapping[str, object]) -> int:
        """Returns the number of the line, which is in the file before any later answer is sent."""
        seq = self.ledger.append(entry)
        self.flush_soon()
        return seq

    def note(
        self, call: Call, outcome: str, *, status: int = 0, post_id: str | None = None, fault: Fault | None = None
    ) -> None:
        self.write(
            {
                "kind": "request",
                "time": self.time(),
                "arrival": call.arrival,
                "operation": call.operation,
                "account": call.account,
                "idempotency_key": call.key,
                "outcome": outcome,
                "status": status,
                "id": post_id,
                "fault": fault,
            }
        )

    def flush_soon(self) -> None:
        self.after_flush(_nothing)

    def after_flush(self, answer: Callable[[], None]) -> None:
        """Answers after the next write, which all requests of this turn of the loop share."""
        if not self._answers:
            asyncio.get_running_loop().call_soon(self._flush)
        self._answers.append(answer)

    def close(self) -> None:
        self._is_closed = True
        self.ledger.close()

    def _flush(self) -> None:
        answers, self._answers = self._answers, []
        if self._is_closed:
            return
        self.ledger.flush()
        for answer in answers:
            answer()


def _nothing() -> None:
    pass
