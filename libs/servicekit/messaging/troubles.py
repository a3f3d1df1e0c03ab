"""Remembers the events that a consumer could not apply because of a defect, and decides when they are retried.

The rule. An event is *bad* if something refuses it deliberately (a `Fault`, bytes that do not decode), or if the
database cannot store its values (`is_data_error`); it is parked at once. Every other error means that *we* are broken:
a missing column, a missing permission, a mistake in a handler. Then nothing is parked. The event stays in the stream
and is retried, after 1 s, then twice as long each time, up to 30 s.

An event that hits a defect which its neighbours do not hit is a poison event. It is parked once all of this is true: it
had `attempts` attempts alone; that took `give_up_after` or longer; and meanwhile, for each event of its type that keeps
failing, `neighbours` others of the type were applied. So a defect that hits every event of a type, or more than one in
a few, parks nothing, no matter how long it lasts.

When several events of a type fail for the first time together and none is applied, the whole type rests, so that a bad
release costs a few transactions each half minute and not two per event. Events that are known to fail say nothing about
the others: they are retried at their own times, less often if more than 1,000 of a type fail, and delay no others. All
this is in memory: a new process starts from scratch.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

_MOST_AT_PACE = 1000  # suspects of a type that are retried at the given pace; with more of them each waits longer
_ENOUGH_FAILURES = 3  # for the first time in one batch, without a success: then the whole type rests
_MOST_FAILURES = 20  # of one type in one batch, even if others of it are applied
_FORGOTTEN_AFTER = 10.0  # longest pauses without a redelivery: another replica has applied it


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The limits of a consumer's retries; see the rule above."""

    first_pause: timedelta = timedelta(seconds=1)
    longest_pause: timedelta = timedelta(seconds=30)
    attempts: int = 5
    give_up_after: timedelta = timedelta(minutes=5)
    neighbours: int = 3
    most_suspects: int = 20_000  # of one type; as many messages as a consumer holds

    def pause(self, failures: int) -> float:
        """Returns the seconds before the next attempt, with jitter, so that replicas do not retry together."""
        doubled = self.first_pause.total_seconds() * 2.0 ** min(max(failures - 1, 0), 30)
        return min(doubled, self.longest_pause.total_seconds()) * random.uniform(0.8, 1.0)


@dataclass(slots=True)
class _Suspect:
    first: float
    applied_before: int  # events of its type that had been applied at its first failure
    attempts: int = 0
    resume_at: float = 0.0


@dataclass(slots=True)
class _Type:
    applied: int = 0
    failures: int = 0  # rounds in a row in which several failed and none was applied
    resume_at: float = 0.0
    suspects: dict[str, _Suspect] = field(default_factory=dict)
    # When an event failed that was not remembered, and how many had been applied by then.
    counted_from: float = 0.0
    applied_before: int = 0

    @property
    def is_troubled(self) -> bool:
        return bool(self.failures or self.suspects)


class Troubles:
    """The troubles of one consumer in one process. `now` is monotonic time in seconds."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._types: dict[str, _Type] = {}
        self._broken = 0

    @property
    def is_broken(self) -> bool:
        return self._broken > 0

    @property
    def any(self) -> bool:
        """Returns whether any event or type has to wait, or is suspected. False is the case that must be cheap."""
        return any(each.suspects or each.resume_at for each in self._types.values())

    @property
    def is_failing(self) -> bool:
        return self.is_broken or any(each.is_troubled for each in self._types.values())

    def failing_types(self) -> list[str]:
        return sorted(name for name, each in self._types.items() if each.is_troubled)

    def pause(self, type_name: str, event_id: str, now: float) -> float:
        """Returns the seconds until this event may be attempted; 0: now."""
        kind = self._types.get(type_name)
        if kind is None:
            return 0.0
        suspect = kind.suspects.get(event_id)
        return max(kind.resume_at - now, suspect.resume_at - now if suspect else 0.0, 0.0)

    def is_suspect(self, type_name: str, event_id: str) -> bool:
        return type_name in self._types and event_id in self._types[type_name].suspects

    def applied(self, type_name: str, event_ids: Iterable[str], fresh: int) -> None:
        """Records applied events, of which `fresh` were new; the others had been applied before, here or elsewhere."""
        kind = self._type(type_name)
        kind.applied += fresh
        if fresh:
            kind.failures, kind.resume_at = 0, 0.0
        if kind.suspects:
            for event_id in event_ids:
                kind.suspects.pop(event_id, None)

    def failed_alone(self, type_name: str, event_id: str, now: float) -> bool:
        """Records a failure; returns whether the event is to be parked now."""
        kind = self._type(type_name)
        if event_id not in kind.suspects and len(kind.suspects) >= self._patience.most_suspects:
            # Without it the count that tells a poison event from a defect starts again.
            kind.counted_from, kind.applied_before = now, kind.applied
            self.rests(type_name, now)
            return False
        suspect = kind.suspects.setdefault(event_id, _Suspect(first=now, applied_before=kind.applied))
        suspect.attempts += 1
        crowd = max(len(kind.suspects) / _MOST_AT_PACE, 1.0)
        suspect.resume_at = now + self._patience.pause(suspect.attempts) * crowd
        return self._is_poison(kind, suspect, now)

    def parked(self, type_name: str, event_id: str) -> None:
        self._type(type_name).suspects.pop(event_id, None)

    def rests(self, type_name: str, now: float) -> None:
        """Makes the type rest, after several events failed and none was applied."""
        kind = self._type(type_name)
        kind.failures += 1
        kind.resume_at = now + self._patience.pause(kind.failures)

    def broken(self) -> float:
        """Records a failure outside any handler; returns the seconds before the consumer goes on."""
        self._broken += 1
        return self._patience.pause(self._broken)

    def works(self) -> None:
        self._broken = 0

    def forget_stale(self, now: float) -> None:
        """Forgets events that were not redelivered here: another replica may have applied them."""
        horizon = now - _FORGOTTEN_AFTER * self._patience.longest_pause.total_seconds()
        for kind in self._types.values():
            for event_id in [each for each, suspect in kind.suspects.items() if suspect.resume_at < horizon]:
                del kind.suspects[event_id]
            if kind.failures and kind.resume_at < horizon:
                kind.failures = 0

    def attempts_of(self, type_name: str, event_id: str) -> int:
        suspect = self._type(type_name).suspects.get(event_id)
        return suspect.attempts if suspect else 0

    def _is_poison(self, kind: _Type, suspect: _Suspect, now: float) -> bool:
        patience = self._patience
        applied = kind.applied - max(suspect.applied_before, kind.applied_before)
        return (
            suspect.attempts >= patience.attempts
            and now - max(suspect.first, kind.counted_from) >= patience.give_up_after.total_seconds()
            and applied >= patience.neighbours * len(kind.suspects)
        )

    def _type(self, name: str) -> _Type:
        return self._types.setdefault(name, _Type())


class Round:
    """One batch: the types of which further attempts would be a waste."""

    def __init__(self, kept: Iterable[str]) -> None:
        self.kept = set(kept)  # events that stay in the stream
        self._failed: Counter[str] = Counter()  # for the first time
        self._failed_again: Counter[str] = Counter()
        self._applied: set[str] = set()

    @property
    def any_failed(self) -> bool:
        return bool(self._failed or self._failed_again)

    def applied(self, type_name: str) -> None:
        self._applied.add(type_name)

    def failed_alone(self, type_name: str, event_id: str, *, again: bool) -> None:
        self.kept.add(event_id)
        (self._failed_again if again else self._failed)[type_name] += 1

    def is_over_for(self, type_name: str) -> bool:
        most = max(self._failed[type_name], self._failed_again[type_name])
        return most >= _MOST_FAILURES or self._is_broken(type_name)

    def resting(self) -> Iterator[str]:
        """Returns the types of which several events failed for the first time and none was applied."""
        return (name for name in self._failed if self._is_broken(name))

    def _is_broken(self, type_name: str) -> bool:
        return self._failed[type_name] >= _ENOUGH_FAILURES and type_name not in self._applied
