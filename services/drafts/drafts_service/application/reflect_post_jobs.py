"""What became of the targets: stores what Publisher announces and folds it into the drafts, a batch at a time."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import chain

from opentelemetry import metrics

from drafts_service.adapters.postgres import store
from drafts_service.domain.post_job import DraftState, PostJobEvent, Standing, fold, latest
from servicekit.pg.database import Transaction
from servicekit.run.zeros import from_zero

_meter = metrics.get_meter(__name__)
_stored = _meter.create_counter("postflow.drafts.post_job_events", description="Post job events taken in, by kind")
_folded = from_zero(
    _meter.create_counter("postflow.drafts.state_changes", description="Drafts that came into a state, by state"),
    *({"state": state.value} for state in DraftState),
)


class ReflectPostJobs:
    """Does not depend on the order of events, on repetitions, or on events lost before a later one of the same job.

    Events of a draft that is not here are stored; the draft is folded from them when it comes.
    """

    async def __call__(self, tx: Transaction, events: Sequence[PostJobEvent], now: datetime) -> None:
        facts = list({(event.organization_id, event.id, event.version): event for event in events}.values())
        newest = latest(facts)
        here = await store.lock_all(tx.connection, {(job.organization_id, job.draft_id) for job in newest})
        known = await store.standings_of(tx.connection, here)
        by_draft: defaultdict[store.DraftKey, list[Standing]] = defaultdict(list)
        for job in latest(chain[Standing](known, newest)):
            by_draft[job.organization_id, job.draft_id].append(job)
        states = await store.reflect(
            tx.connection,
            events=facts,
            newest=newest,
            folded={key: fold(targets, by_draft[key]) for key, targets in here.items()},
            now=now,
        )
        tx.after_commit(lambda: _count(facts, states))


def _count(events: Sequence[PostJobEvent], states: Sequence[str]) -> None:
    for kind, number in Counter(event.kind for event in events).items():
        _stored.add(number, {"kind": kind})
    for state, number in Counter(states).items():
        _folded.add(number, {"state": state})
