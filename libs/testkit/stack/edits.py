"""Promise G21: checks the answers to edits of drafts against the posts that the provider has."""

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
    """The targets that it removes."""
    in_flight: Set[str] = frozenset()
    """The post jobs that the answer names."""


def unannounced(edits: Sequence[Edit], jobs: Mapping[str, Row], effects: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Finds older texts, and posts on removed targets, that are out although the answer does not name their jobs.

    `jobs` and `effects` are keyed by job id. Each effect is reported once, with the first answer that conceals it.
    """
    concealed: dict[str, str] = {}
    for edit, next_edit in _with_the_next(edits):
        for job_id, job in jobs.items():
            if (job["organization_id"], job["draft_id"]) == (edit.organization_id, edit.draft_id):
                for effect in _concealed_by(edit, next_edit, job, effects.get(job_id, ())):
                    concealed.setdefault(effect["id"], _sentence(edit, effect, job_id))
    yield from concealed.values()


def _with_the_next(edits: Sequence[Edit]) -> Iterator[tuple[Edit, datetime]]:
    """Pairs each edit with the time of the draft's next one, which may have put a removed target back."""
    later: dict[tuple[str, str], datetime] = {}
    found = []
    for edit in sorted(edits, key=lambda each: each.called, reverse=True):
        key = (edit.organization_id, edit.draft_id)
        found.append((edit, later.get(key, datetime.max.replace(tzinfo=UTC))))
        later[key] = edit.called
    return reversed(found)


def _concealed_by(edit: Edit, next_edit: datetime, job: Row, effects: Sequence[Row]) -> Iterator[Row]:
    if job["id"] in edit.in_flight:
        return
    removed = (job["social_account_id"], job["channel"], job["destination"]) in edit.removed
    for effect in effects:
        if effect["text"] in edit.older or (removed and datetime.fromisoformat(effect["time"]) < next_edit):
            yield effect


def _sentence(edit: Edit, effect: Row, job_id: str) -> str:
    seconds = (datetime.fromisoformat(effect["time"]) - edit.answered).total_seconds()
    took = (edit.answered - edit.called).total_seconds()
    return (
        f"draft {edit.draft_id} was changed (OK after {took:.3f} s, in flight: {sorted(edit.in_flight)}), and"
        f" job {job_id} published {effect['text']!r} {seconds:+.3f} s after the answer"
    )
