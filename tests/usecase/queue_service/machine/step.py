"""A step of a client or of a neighbour, done twice: carried out on the service, and worked out on the model."""

from collections.abc import Mapping
from typing import Protocol

from tests.usecase.queue_service.machine.clients import Client, World
from tests.usecase.queue_service.machine.model import Model

Ids = Mapping[tuple[str, str, int], str]
"""The ids of slots by account, draft and number."""
Outcome = str | tuple[str, ...]


class Step(Protocol):
    async def run(self, world: World, client: Client) -> Outcome: ...

    def apply(self, model: Model, ids: Ids) -> Outcome: ...
