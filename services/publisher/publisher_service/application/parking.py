"""Parks the posts behind the first of a line that the same limit keeps back, a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from publisher_service.adapters.postgres.jobs import save_jobs
from publisher_service.adapters.postgres.parking import behind_head, park
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.claim import Verdict
from publisher_service.domain.limits import PARKING, is_parked_alike
from publisher_service.domain.post_job import JobState, PostJob, moved
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox

# One by one, each with a look of its own, a long line would cost a transaction per post.
_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A limit on which the first post of an account's line was parked."""

    organization_id: str
    account_id: str
    verdict: Verdict
    parked_on: str
    until: datetime


async def park_behind(tx: Transaction, outbox: Outbox, heads: Sequence[Parked], *, now: datetime) -> None:
    """Parks the next posts of these lines, whose gates this transaction has locked. A later look parks the others."""
    for head in heads:
        jobs = await behind_head(tx.connection, (head.organization_id, head.account_id), limit=_PAGE)
        parked = [_parked(job, head, now) for job in jobs if _is_alike(job, head, now)]
        await save_jobs(tx.connection, parked)
        await park(tx.connection, parked)
        await outbox.append(tx, [post_job_changed(job) for job in parked], now=now)
        tx.after_commit(partial(write_outcomes, parked))


def _is_alike(job: PostJob, head: Parked, now: datetime) -> bool:
    """Returns whether the limit keeps this post back, too.

    One in doubt may have a place of the cap already, and what PublishNow sends may pass over the limit.
    """
    is_late = job.not_after is None or job.not_after < now
    return is_parked_alike(job, head.parked_on) and not (is_late or job.in_doubt or job.is_sent_now)


def _parked(job: PostJob, head: Parked, now: datetime) -> PostJob:
    return moved(
        job,
        JobState.WAITING,
        now=now,
        reason=PARKING[head.verdict],
        until=job.not_after,
        parked_on=head.parked_on,
        expected_time=head.until,
    )
