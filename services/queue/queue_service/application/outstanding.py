"""Tells lost commands from those that merely wait: in the stream for Publisher, or with their answers on the way.

Publisher acknowledges a command only after it has committed what becomes of its post. So a command that the stream
holds is not lost. One that the stream no longer holds is answered by an event within moments; if Queue has heard all
events of that time and no answer is among them, the command or its answer is lost.

What a process remembers here saves it work and nothing else: another process, or this one after a restart, finds the
same in the database and in the streams. A command of which nothing is known counts as lost.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from queue_service.adapters.postgres.dispatch import find_unanswered_targets
from queue_service.adapters.postgres.sent_commands import (
    delete_batches,
    delete_sent,
    list_sent,
    read_sent,
    save_sent,
)
from queue_service.domain.command import REPEAT_DELAYS, Command, DueSlot, SentBatch, SentCommand
from queue_service.domain.stream import Hearing, Holding
from servicekit.pg.database import Database
from servicekit.pg.session import Session

EARLY = timedelta(seconds=2)
"""How long before its repeat is due a slot is looked at: long enough to tell a lost answer from one on the way."""

# A second is enough for the answer to a command that was sent long ago. One that has just left the stream was sent by a
# Publisher that is busy, or has just started: it gets the time that its answer gets when all is well.
_ON_ITS_WAY = timedelta(seconds=1)
_JUST_TAKEN = REPEAT_DELAYS[0]
# If Queue cannot hear events for this long, it asks.
_LONGEST_SILENCE = timedelta(seconds=30)
# Batches are kept for so long after the stream is past them: their answers may be on their way.
_KEPT = timedelta(seconds=5)

_Copy = tuple[str, str, int]


class HoldingStream(Protocol):
    """The stream of commands; see `queue_service.adapters.command_stream`."""

    async def holding(self) -> Holding | None: ...

    def take_stored(self) -> list[SentCommand]: ...

    @property
    def first_sequence(self) -> int: ...


class Answers(Protocol):
    """The stream of events; see `queue_service.adapters.event_stream`."""

    async def hearing(self) -> Hearing | None: ...


@dataclass(slots=True)
class _Gone:
    """A copy of a command that has left the stream unanswered: since when, and the events to hear before it is lost."""

    since: datetime
    patience: timedelta
    events: int | None = None


class Outstanding:
    def __init__(self, *, database: Database, commands: HoldingStream, answers: Answers) -> None:
        self._database = database
        self._commands = commands
        self._answers = answers
        self._stored: list[SentCommand] = []
        self._losses = 0
        self._batches: dict[int, SentBatch] = {}
        self._sent = defaultdict[_Copy, list[SentCommand]](list)
        self._held: set[_Copy] = set()
        self._gone: dict[_Copy, _Gone] = {}
        # Since when, and after how many losses, the stream is known to be past the messages before this sequence.
        self._past = (datetime.min.replace(tzinfo=UTC), 0, 0)
        # Batches of which the stream holds nothing and no slot waits, and since when.
        self._over: dict[int, datetime] = {}

    @property
    def held(self) -> int:
        """The number of slots whose commands the stream held at the last look."""
        return len(self._held)

    def add_stored(self, missing: Iterable[Command], *, losses: int) -> None:
        """Takes note of what was sent; `losses` counts the losses of the stream before that.

        A slot with a command that is `missing` counts as lost.
        """
        if losses != self._losses:
            self._stored, self._losses = [], losses
        incomplete = {(each.organization_id, each.slot_id, each.emission) for each in missing}
        self._stored += [each for each in self._commands.take_stored() if each.copy_key not in incomplete]

    async def save(self, *, now: datetime) -> None:
        """Saves where commands were stored, once for all that were sent since the last time."""
        if not self._stored:
            return
        # Taken first: dispatch adds to them meanwhile.
        stored, self._stored, losses = self._stored, [], self._losses
        try:
            async with self._database.session() as session:
                await save_sent(session, stored, losses=losses)
                await self._delete_past(session, losses, now)
        except Exception:
            if losses == self._losses:
                self._stored = stored + self._stored
            raise

    async def _delete_past(self, session: Session, losses: int, now: datetime) -> None:
        """Deletes the batches that the stream has been past for a while."""
        since, losses_then, first = self._past
        if losses == losses_then and now - since < _KEPT:
            return
        if losses == losses_then and first:
            await delete_sent(session, first_sequence=first, losses=losses)
        # After a loss, the sequence that was last seen may be one of the stream before it.
        self._past = (now, losses, self._commands.first_sequence if losses == losses_then else 0)

    async def lost(self, slots: Sequence[DueSlot], *, losses: int, now: datetime) -> list[DueSlot]:
        """Returns those of the unanswered slots of which a command or its answer is lost."""
        if not slots:
            self._forget()
            return []
        keys = [slot.copy_key for slot in slots]
        waiting = set(keys)
        await self._load(losses, waiting)
        # Asked after loading: the stream has stored all that is loaded, or has lost it.
        holding = await self._commands.holding()
        if holding is None:
            return []
        await self._delete_over(holding, waiting, now)
        known = {key: sent for key in keys if (sent := self._sent.get(key))}
        held = {key for key, sent in known.items() if all(holding.holds(each.sequence) for each in sent)}
        if len(held) < len(known):
            others = known.keys() - held
            held |= await self._held_in_part([slot for slot in slots if slot.copy_key in others], holding)
        gone = known.keys() - held
        is_lost = await self._unanswered(gone, now) if gone else set()
        self._held, self._gone = held, {key: self._gone[key] for key in gone if key in self._gone}
        return [slot for slot, key in zip(slots, keys, strict=True) if key not in known or key in is_lost]

    async def _held_in_part(self, slots: Sequence[DueSlot], holding: Holding) -> set[_Copy]:
        """Returns the slots of which the stream holds a command for each target that has no answer."""
        partly = [slot for slot in slots if any(holding.holds(each.sequence) for each in self._sent[slot.copy_key])]
        if not partly:
            return set()
        async with self._database.statement() as connection:
            unanswered = await find_unanswered_targets(connection, partly)
        return {
            slot.copy_key
            for slot in partly
            if all(
                holding.holds(each.sequence)
                for each in self._sent[slot.copy_key]
                if (each.organization_id, each.slot_id, each.channel, each.destination) in unanswered
            )
        }

    async def _unanswered(self, gone: Collection[_Copy], now: datetime) -> set[_Copy]:
        """Returns the copies whose answer is not on its way any more.

        An answer may be on its way only while Queue has not heard all events, or if the stream has just held the
        command.
        """
        hearing = await self._answers.hearing()
        return {key for key in gone if self._is_overdue(key, hearing, now)}

    def _is_overdue(self, key: _Copy, hearing: Hearing | None, now: datetime) -> bool:
        note = self._gone.get(key)
        if note is None:
            if hearing is not None and hearing.is_complete and key not in self._held:
                return True
            self._gone[key] = _Gone(now, _JUST_TAKEN if key in self._held else _ON_ITS_WAY)
            return False
        if now - note.since >= _LONGEST_SILENCE:
            return True
        if hearing is None or now - note.since < note.patience:
            return False
        if note.events is None:
            note.events = hearing.last_sequence
        return hearing.is_complete or hearing.heard_sequence >= note.events

    async def _load(self, losses: int, waiting: Set[_Copy]) -> None:
        """Loads the batches that other processes have sent, or this one before its restart.

        Keeps those that have been deleted while slots wait for their answers.
        """
        async with self._database.statement() as connection:
            ids = await list_sent(connection)
            unread = ids - self._batches.keys()
            new = await read_sent(connection, unread) if unread else []
        for batch in list(self._batches.values()):
            if batch.losses != losses or (batch.id not in ids and not _is_awaited(batch, waiting)):
                self._drop(batch)
        for batch in new:
            if batch.losses == losses:
                self._batches[batch.id] = batch
                for each in batch.commands:
                    self._sent[each.copy_key].append(each)

    async def _delete_over(self, holding: Holding, waiting: Set[_Copy], now: datetime) -> None:
        """Deletes batches behind a command that stays in the stream: they would pile up as long as it does."""
        over = [
            batch
            for batch in self._batches.values()
            if not any(holding.holds(each.sequence) for each in reversed(batch.commands))
            and not _is_awaited(batch, waiting)
        ]
        self._over = {batch.id: self._over.get(batch.id, now) for batch in over}
        if old := [batch for batch in over if now - self._over[batch.id] >= _KEPT]:
            async with self._database.statement() as connection:
                await delete_batches(connection, [batch.id for batch in old])
            for batch in old:
                self._drop(batch)

    def _drop(self, batch: SentBatch) -> None:
        del self._batches[batch.id]
        for key in {each.copy_key for each in batch.commands}:
            self._sent.pop(key, None)

    def _forget(self) -> None:
        """Forgets everything: nothing is due, and the next backlog loads what it needs."""
        self._batches.clear()
        self._sent.clear()
        self._held.clear()
        self._gone.clear()
        self._over.clear()


def _is_awaited(batch: SentBatch, waiting: Set[_Copy]) -> bool:
    return not waiting.isdisjoint(each.copy_key for each in batch.commands)
