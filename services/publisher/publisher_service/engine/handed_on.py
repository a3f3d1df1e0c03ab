"""The commands that the sweep has handed on and that are still held: bounded, and fair over organizations."""

from collections import Counter
from collections.abc import Sequence

from publisher_service.domain.claim import Command
from publisher_service.engine.held_command import CommandKey, HeldCommand

_MOST = 4000
_MOST_OF_AN_ORGANIZATION = 2000


class HandedOn:
    def __init__(self) -> None:
        self._keys: set[CommandKey] = set()
        self._count_of: Counter[str] = Counter()

    def take(self, commands: Sequence[Command], *, since: float) -> list[HeldCommand]:
        """Returns the commands that are new and have a place. A later sweep finds the others again."""
        taken: list[HeldCommand] = []
        for command in commands:
            held = HeldCommand(command=command, since=since, on_release=self._release)
            if held.key not in self._keys and self._has_place(command.organization_id):
                self._keys.add(held.key)
                self._count_of[command.organization_id] += 1
                taken.append(held)
        return taken

    def _has_place(self, organization_id: str) -> bool:
        return len(self._keys) < _MOST and self._count_of[organization_id] < _MOST_OF_AN_ORGANIZATION

    def _release(self, held: HeldCommand) -> None:
        self._keys.discard(held.key)
        organization_id = held.command.organization_id
        self._count_of[organization_id] -= 1
        if not self._count_of[organization_id]:
            del self._count_of[organization_id]
