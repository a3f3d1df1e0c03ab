"""ReflectPostJobs: archives Publisher's events of post jobs and folds them into the drafts, a batch at a time."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import chain

from opentelemetry import metrics

from drafts_service.adapters.postgres.drafts import lock_drafts
from drafts_service.adapters.postgres.post_jobs import find_standings, reflect
from drafts_service.domain.draft import DraftKey
from drafts_service.domain.post_job import DraftState, PostJobEvent, Standing, fold, latest
from servicekit.pg.database import Transaction
from servicekit.run.zeros import from_zero

_meter = metrics.get_meter(__name__)
_archived = _meter.create_counter(
    "postflow.drafts.post_job_events", description="Events of post jobs that were archived, by kind"
)
_folded = from_zero(
    _meter.create_counter("postflow.drafts.state_changes", description="Changes of a draft's state, by the new state"),
    *({"state": state.value} for state in DraftState),
)


class ReflectPostJobs:
    """Tolerates reordering, duplicates, and a lost event if a newer one of the same job arrives.

    Events of a missing draft are stored, and folded when the draft is created.
    """

    async def __call__(self, tx: Transaction, events: Sequence[PostJobEvent], now: datetime) -> None:
        unique = list({(event.organization_id, event.id, event.version): event for event in events}.values())
        newest = latest(unique)
        targets_by_draft = await lock_drafts(tx, {(job.organization_id, job.draft_id) for job in newest})
        known = await find_standings(tx, newest)
        by_draft: defaultdict[DraftKey, list[Standing]] = defaultdict(list)
        for job in latest(chain[Standing](known, newest)):
            by_draft[job.organization_id, job.draft_id].append(job)
        states = await reflect(
            tx,
            events=unique,
            newest=newest,
            folded={key: fold(targets, by_draft[key]) for key, targets in targets_by_draft.items()},
            now=now,
        )
        tx.after_commit(lambda: _count(unique, states))


def _count(events: Sequence[PostJobEvent], states: Sequence[str]) -> None:
    for kind, number in Counter(event.kind for event in events).items():
        _archived.add(number, {"kind": kind})
    for state, number in Counter(states).items():
        _folded.add(number, {"state": state})
