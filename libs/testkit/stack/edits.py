"""What authors heard when they changed a draft, held against what the provider has (G21)."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Row = Mapping[str, Any]
Place = tuple[str, str, str]
"""Account, channel and destination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of a draft that was answered OK."""

    organization_id: str
    draft_id: str
    called: datetime
    answered: datetime
    older: Set[str] = frozenset()
    """The texts that it replaces."""
    removed: Set[Place] = frozenset()
    """The targets that it takes out."""
    in_flight: Set[str] = frozenset()
    """The post jobs that the answer names."""


def unannounced(edits: Sequence[Edit], jobs: Mapping[str, Row], effects: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Older texts, and posts on targets taken out, that are out although the answer does not name their jobs.

    `jobs` and the effects are by the job's id. Each effect is told once, with the first answer that conceals it.
    """
    concealed: dict[str, str] = {}
    for edit, back in _with_the_next(edits):
        for job_id, job in jobs.items():
            if (job["organization_id"], job["draft_id"]) == (edit.organization_id, edit.draft_id):
                for effect in _against(edit, back, job, effects.get(job_id, ())):
                    concealed.setdefault(effect["id"], _told(edit, effect, job_id))
    yield from concealed.values()


def _with_the_next(edits: Sequence[Edit]) -> Iterator[tuple[Edit, datetime]]:
    """Each edit, and when the draft was changed again: a target that was taken out may have been put back."""
    later: dict[tuple[str, str], datetime] = {}
    found = []
    for edit in sorted(edits, key=lambda each: each.called, reverse=True):
        key = (edit.organization_id, edit.draft_id)
        found.append((edit, later.get(key, datetime.max.replace(tzinfo=UTC))))
        later[key] = edit.called
    return reversed(found)


def _against(edit: Edit, back: datetime, job: Row, effects: Sequence[Row]) -> Iterator[Row]:
    if job["id"] in edit.in_flight:
        return
    removed = (job["social_account_id"], job["channel"], job["destination"]) in edit.removed
    for effect in effects:
        if effect["text"] in edit.older or (removed and datetime.fromisoformat(effect["time"]) < back):
            yield effect


def _told(edit: Edit, effect: Row, job_id: str) -> str:
    seconds = (datetime.fromisoformat(effect["time"]) - edit.answered).total_seconds()
    took = (edit.answered - edit.called).total_seconds()
    return (
        f"draft {edit.draft_id} was changed (OK after {took:.3f} s, in flight: {sorted(edit.in_flight)}), and"
        f" job {job_id} brought out {effect['text']!r} {seconds:+.3f} s from the answer"
    )
