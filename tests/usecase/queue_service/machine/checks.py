"""Comparing what is stored after a step with the model, and with what always holds."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from postflow.bus.v1 import bus_pb2
from postflow.queue.v1.queue_events_pb2 import SlotCanceled, SlotMoved, SlotScheduled
from queue_service.adapters.postgres.accounts import find_queues
from queue_service.domain.account import AccountQueue
from servicekit.timestamps import timestamp
from tests.usecase.queue_service.machine.clients import ORG
from tests.usecase.queue_service.machine.model import MINUTE, NEWS, NOTICE, Model, Refusal
from tests.usecase.queue_service.machine.step import Ids

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

Shown = dict[tuple[str, str, int], tuple[Any, ...]]
EVENTS = {kind.DESCRIPTOR.full_name: kind for kind in (SlotScheduled, SlotMoved, SlotCanceled)}
CALLED_OFF = {"REMOVED", "CLEARED", "OVERDUE"}
_SLOTS = """
    select id, draft_id, social_account_id, schedule_time, origin, state, revision, state_reason, not_after, sequence,
        is_live, emission, next_emit_at, cast(s as text) as whole
    from slot s order by social_account_id, sequence
"""
_LOOKED_AT = 12
"""How many free times of each line are compared with the frontier."""


@dataclass
class Stored:
    """The rows of slots, with their ids by account, draft and number, and the queues of the accounts."""

    rows: list[Any]
    queues: dict[str, AccountQueue]
    slots: Shown = field(default_factory=dict)
    ids: Ids = field(default_factory=dict)


async def read(queue: "Queue", accounts: Iterable[str]) -> Stored:
    rows = await queue.rows(_SLOTS)
    async with queue.database.read_session() as session:
        found = await find_queues(session, {(ORG, account) for account in accounts})
    numbers = defaultdict[tuple[str, str], int](int)
    slots, ids = {}, {}
    for row in rows:
        name = row.social_account_id, row.draft_id
        key = (*name, numbers[name])
        numbers[name] += 1
        reason = row.state_reason if row.state_reason in CALLED_OFF else ""
        not_after = row.not_after if row.state == "SCHEDULED" else None
        slots[key] = (row.schedule_time, row.origin, row.state, row.revision, reason, not_after)
        ids[key] = row.id
    queues = {account: each for (_, account), each in found.items()}
    return Stored(rows, queues, slots, ids)


def expected(model: Model) -> Shown:
    return {
        (account.id, slot.draft, slot.number): (
            slot.time,
            slot.origin.value,
            slot.state.value,
            slot.revision,
            slot.reason,
            slot.not_after if slot.is_scheduled else None,
        )
        for account in model.accounts.values()
        for slot in account.slots
    }


def differences(model: Model, stored: Stored) -> list[str]:
    """Returns in what the model and the database differ."""
    wanted = expected(model)
    found = [
        f"slot {key}: expected {_text(wanted.get(key))}, stored {_text(stored.slots.get(key))}"
        for key in sorted({*wanted, *stored.slots})
        if wanted.get(key) != stored.slots.get(key)
    ]
    for account in model.accounts.values():
        queue = stored.queues.get(account.id, AccountQueue(social_account_id=account.id))
        earliest = model.now + NOTICE
        have = (queue.arrangement, queue.pause_time is not None, queue.skip_next, queue.late_policy, queue.pace)
        want = (account.etag, account.is_paused, account.skip_next, account.late_policy, account.pace)
        if have != want:
            found.append(f"account {account.id}: expected {want}, stored {have}")
        skipped = [time for time in queue.skipped_times if time >= earliest]
        if skipped != [time for time in account.skipped if time >= earliest]:
            found.append(f"account {account.id}: expected skips {account.skipped}, stored {skipped}")
    return found


def _text(shown: tuple[Any, ...] | None) -> str:
    return " ".join(str(each) for each in shown) if shown else "nothing"


class Checks:
    """Checks what holds after every step, and remembers what must not change."""

    def __init__(self) -> None:
        self._ended: dict[str, str] = {}
        self._announced: dict[str, Any] = {}
        self._position = 0

    async def check(self, queue: "Queue", model: Model, stored: Stored) -> None:
        for account in model.accounts:
            rows = [row for row in stored.rows if row.social_account_id == account]
            self._check_spacing(rows)
            self._check_due_time(rows, stored.queues.get(account))
            sequences = [row.sequence for row in rows]
            assert sequences == sorted(set(sequences)), "sequences grow"
            if account in stored.queues:
                check_frontiers(model, account, stored.queues[account])
        self._check_ended(stored.rows)
        await self._check_events(queue, stored.rows)

    @staticmethod
    def _check_spacing(rows: Sequence[Any]) -> None:
        live = sorted(row.schedule_time for row in rows if row.is_live)
        assert all(second - first >= MINUTE for first, second in pairwise(live)), f"live slots too near: {live}"

    @staticmethod
    def _check_due_time(rows: Sequence[Any], queue: AccountQueue | None) -> None:
        first = min((row.schedule_time for row in rows if row.state == "SCHEDULED"), default=None)
        due = queue.next_due_time if queue else None
        assert first is None or (due is not None and due <= first), f"dispatch overlooks {first}: {due}"

    def _check_ended(self, rows: Sequence[Any]) -> None:
        """A slot that has ended stays as it is."""
        ended = {row.id: row.whole for row in rows if not row.is_live}
        changed = {slot: (whole, ended.get(slot)) for slot, whole in self._ended.items() if ended.get(slot) != whole}
        assert not changed, f"ended slots have changed: {changed}"
        self._ended = ended

    async def _check_events(self, queue: "Queue", rows: Sequence[Any]) -> None:
        """The events of a slot have revisions without gaps, and the last one tells what is stored."""
        events = await queue.rows(
            "select position, payload from outbox where position > :after order by position", after=self._position
        )
        for row in events:
            self._position = row.position
            for each in bus_pb2.Envelope.FromString(row.payload).events:
                if each.type in EVENTS:
                    self._hear(EVENTS[each.type].FromString(each.payload))
        for row in rows:
            last = self._announced.get(row.id)
            assert last is not None, f"slot {row.id} was never announced"
            assert last.revision == row.revision, f"{last} about {row}"
            assert last.schedule_time == timestamp(row.schedule_time), f"{last} about {row}"
            is_called_off = row.state == "CANCELED" and row.state_reason in CALLED_OFF
            assert isinstance(last, SlotCanceled) == is_called_off, f"{last} about {row}"

    def _hear(self, event: Any) -> None:
        before = self._announced.get(event.slot_id)
        revisions = {before.revision + 1} if before else {1}
        if before and isinstance(event, SlotCanceled):
            # A dispatched slot is canceled under the revision that Publisher has.
            revisions.add(before.revision)
        assert event.revision in revisions, f"{event} after {before}"
        self._announced[event.slot_id] = event


def check_frontiers(model: Model, account: str, queue: AccountQueue) -> None:
    """No frontier passes over a free time."""
    for category in ("", NEWS):
        frontier = queue.frontier_of(category)
        try:
            free = list(islice(model.accounts[account].free_times(model.now, category), _LOOKED_AT))
        except Refusal:
            return
        passed = [time for time in free if frontier.next_open(time) != time]
        assert not passed, f"the frontier {frontier} of {account} and {category!r} passes over {passed}"


def due(moments: Iterable[datetime], now: datetime) -> timedelta:
    """Returns how long it takes until the first of the moments that are still to come."""
    return min((moment - now for moment in moments if moment > now), default=MINUTE)
