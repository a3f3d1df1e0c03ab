"""The marks that a process knows: how far it has come itself, and how far the others have."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime

from publisher_service.domain.mark import Mark, highest


class Marks:
    def __init__(self, process: str) -> None:
        """`process` names this process on its marks and on its attempts."""
        self.process = process
        # Set when this process has come further than NATS knows.
        self.changed = asyncio.Event()
        self._known: dict[str, Mark] = {}

    @property
    def known(self) -> Mapping[str, Mark]:
        """The highest mark of each process."""
        return self._known

    def learn(self, marks: Iterable[Mark]) -> None:
        self._known = highest([*self._known.values(), *marks])

    def reach(self, mark: Mark) -> None:
        """Learns what this process has committed."""
        self.learn([mark])
        self.changed.set()

    def forget(self, covered: Mapping[str, Mark], *, before: datetime) -> None:
        """Forgets covered marks that are older than this."""
        self._known = {
            name: mark
            for name, mark in self._known.items()
            if mark.time >= before or name not in covered or covered[name].number < mark.number
        }
