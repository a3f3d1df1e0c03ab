"""Calls that stop posts, under faults; remembers what was stopped, from which answer until which call."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from postflow.publisher.v1 import hold_pb2, publisher_service_pb2
from postflow.queue.v1 import queue_slot_pb2
from servicekit.clock import SystemClock
from testkit.stack.stops import EVERYTHING, FOREVER, Scope, Stop
from testkit.stack.tenant import Tenant

T = TypeVar("T")

LIVE = (queue_slot_pb2.QUEUE_SLOT_STATE_SCHEDULED, queue_slot_pb2.QUEUE_SLOT_STATE_DISPATCHED)
REMOVAL, PAUSE, HOLD, DISCONNECTION, REFUSAL = (
    "RemoveFromQueue",
    "PauseQueue",
    "PutHold",
    "DisconnectAccount",
    "PublishNow (refused)",
)


class Insist(Protocol):
    """Repeats a call until there is an answer."""

    async def __call__(self, call: Callable[[], Awaitable[T]]) -> T: ...


class Stopping:
    def __init__(self, tenant: Tenant, insist: Insist, answers: Counter[str]) -> None:
        """Counts what was answered OK in `answers`."""
        self._tenant = tenant
        self._insist = insist
        self._answers = answers
        self._stops: list[Stop] = []
        self._asked_to_remove = set[tuple[str, str]]()

    @property
    def asked_to_remove(self) -> Set[tuple[str, str]]:
        return frozenset(self._asked_to_remove)

    def of(self, *kinds: str) -> Sequence[Stop]:
        return [stop for stop in self._stops if stop.what.startswith(kinds)]

    async def remove(self, draft: str, request_id: str) -> None:
        self._asked_to_remove.add((self._tenant.organization_id, draft))
        for slot in await self._live(draft):
            asked = SystemClock().now()
            await self._insist(partial(self._tenant.remove, slot.id, request_id=request_id))
            self.stopped(REMOVAL, asked, Scope(social_account_id=slot.social_account_id))

    async def move(self, draft: str, due: datetime, request_id: str) -> None:
        for slot in await self._live(draft):
            await self._insist(partial(self._tenant.move, slot.id, due, request_id=request_id))

    async def pause(self, account: str, request_id: str) -> None:
        asked = SystemClock().now()
        in_flight = await self._insist(lambda: self._tenant.pause(account, request_id=request_id))
        self.stopped(PAUSE, asked, Scope(social_account_id=account), in_flight)

    async def resume(self, account: str, request_id: str) -> None:
        self.ending(PAUSE, account)
        await self._insist(lambda: self._tenant.resume(account, request_id=request_id))
        self.ended(PAUSE, account)

    async def hold(self, hold_id: str, request_id: str, scope: Scope) -> None:
        """Puts a hold on a brand, a provider, or the organization."""
        kind = hold_pb2.HOLD_SCOPE_BRAND if scope.brand_id else hold_pb2.HOLD_SCOPE_PROVIDER
        request = publisher_service_pb2.PutHoldRequest(
            organization_id=self._tenant.organization_id,
            hold_id=hold_id,
            scope=hold_pb2.HOLD_SCOPE_ORGANIZATION if scope == EVERYTHING else kind,
            scope_id=scope.brand_id or scope.provider,
            reason="wrong price",
            request_id=request_id,
        )
        asked = SystemClock().now()
        answer = await self._insist(lambda: self._tenant.clients.publisher.PutHold(request))
        self.stopped(f"{HOLD} {hold_id}", asked, scope, answer.in_flight_post_job_ids)

    async def release(self, hold_id: str, request_id: str) -> None:
        request = publisher_service_pb2.ReleaseHoldRequest(
            organization_id=self._tenant.organization_id, hold_id=hold_id, request_id=request_id
        )
        self.ending(f"{HOLD} {hold_id}")
        await self._insist(lambda: self._tenant.clients.publisher.ReleaseHold(request))
        self.ended(f"{HOLD} {hold_id}")
        self._answers["ReleaseHold"] += 1

    def stopped(self, what: str, asked: datetime, scope: Scope, in_flight: Sequence[str] = ()) -> None:
        """Records an answer to a call that was `asked` for then."""
        self._answers[what.partition(" ")[0]] += 1
        self._stops.append(
            Stop(
                organization_id=self._tenant.organization_id,
                scope=scope,
                what=what,
                asked=asked,
                answered=SystemClock().now(),
                in_flight=frozenset(in_flight),
            )
        )

    def ending(self, what: str, account: str = "") -> None:
        """Records that a call is about to be made after which posts may start again."""
        now = SystemClock().now()
        for index, stop in enumerate(self._stops):
            if (stop.what, stop.scope.social_account_id, stop.until) == (what, account, FOREVER):
                self._stops[index] = replace(stop, until=now)

    def ended(self, what: str, account: str = "") -> None:
        """Records that such a call was answered."""
        now = SystemClock().now()
        for index, stop in enumerate(self._stops):
            if (stop.what, stop.scope.social_account_id, stop.over) == (what, account, FOREVER):
                self._stops[index] = replace(stop, over=now)

    async def _live(self, draft: str) -> Sequence[queue_slot_pb2.QueueSlot]:
        slots: Sequence[Any] = await self._insist(lambda: self._tenant.slots(draft))
        return [slot for slot in slots if slot.state in LIVE]
