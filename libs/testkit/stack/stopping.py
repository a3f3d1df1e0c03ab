"""Removals, moves and pauses of posts under faults; remembers what was stopped, from which answer until which call."""

from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from postflow.queue.v1 import queue_slot_pb2
from servicekit.clock import SystemClock
from testkit.stack.stops import FOREVER, Stop
from testkit.stack.tenant import Tenant

T = TypeVar("T")

LIVE = (queue_slot_pb2.QUEUE_SLOT_STATE_SCHEDULED, queue_slot_pb2.QUEUE_SLOT_STATE_DISPATCHED)
REMOVAL, PAUSE = "RemoveFromQueue", "PauseQueue"


class Insist(Protocol):
    """Repeats a call until there is an answer."""

    async def __call__(self, call: Callable[[], Awaitable[T]]) -> T: ...


class Stopping:
    def __init__(self, tenant: Tenant, insist: Insist) -> None:
        self._tenant = tenant
        self._insist = insist
        self._stops: list[Stop] = []
        self._asked_to_remove = set[tuple[str, str]]()

    @property
    def removals(self) -> Sequence[Stop]:
        return [stop for stop in self._stops if stop.what == REMOVAL]

    @property
    def pauses(self) -> Sequence[Stop]:
        return [stop for stop in self._stops if stop.what == PAUSE]

    @property
    def asked_to_remove(self) -> Set[tuple[str, str]]:
        return frozenset(self._asked_to_remove)

    async def remove(self, draft: str, request_id: str) -> None:
        self._asked_to_remove.add((self._tenant.organization_id, draft))
        for slot in await self._live(draft):
            await self._insist(partial(self._tenant.remove, slot.id, request_id=request_id))
            self._stopped(slot.social_account_id, REMOVAL)

    async def move(self, draft: str, due: datetime, request_id: str) -> None:
        for slot in await self._live(draft):
            await self._insist(partial(self._tenant.move, slot.id, due, request_id=request_id))

    async def pause(self, account: str, request_id: str) -> None:
        in_flight = await self._insist(lambda: self._tenant.pause(account, request_id=request_id))
        self._stopped(account, PAUSE, in_flight)

    async def resume(self, account: str, request_id: str) -> None:
        self.ended(account, PAUSE)
        await self._insist(lambda: self._tenant.resume(account, request_id=request_id))

    def ended(self, account: str, what: str) -> None:
        """Records that a call is about to be made after which posts of the account may start again."""
        now = SystemClock().now()
        for index, stop in enumerate(self._stops):
            if (stop.social_account_id, stop.what, stop.until) == (account, what, FOREVER):
                self._stops[index] = replace(stop, until=now)

    async def _live(self, draft: str) -> Sequence[queue_slot_pb2.QueueSlot]:
        slots: Sequence[Any] = await self._insist(lambda: self._tenant.slots(draft))
        return [slot for slot in slots if slot.state in LIVE]

    def _stopped(self, account: str, what: str, in_flight: Sequence[str] = ()) -> None:
        self._stops.append(
            Stop(
                organization_id=self._tenant.organization_id,
                social_account_id=account,
                what=what,
                answered=SystemClock().now(),
                in_flight=frozenset(in_flight),
            )
        )
