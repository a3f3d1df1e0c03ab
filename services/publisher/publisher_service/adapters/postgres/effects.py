"""Effects of attempts on their accounts: the log of activities, the use of daily caps, and spacing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from channels import Action
from publisher_service.adapters.postgres.limits import Send, give_back, lock_gates_of, note_sends, reserve_sends
from publisher_service.domain.activity import MAY_HAVE_EFFECT, ActivityOutcome, outcome_of
from publisher_service.domain.limits import action_of_job, counts_for_limits
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.settlement import AttemptState, Settlement

# The id says which end of which attempt it is: of each there is one.
_LOG = text("""
    insert into activity (organization_id, social_account_id, id, post_job_id, action, outcome, create_time, run)
    select organization_id, account_id, id || '.' || fence || '.' || outcome, id, action, outcome, :now, run
    from unnest(
        cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:ids as text[]),
        cast(:fences as bigint[]), cast(:actions as text[]), cast(:outcomes as text[]), cast(:runs as integer[])
    ) as new (organization_id, account_id, id, fence, action, outcome, run)
    on conflict do nothing
""")

_LIMITED = text("""
    select a.organization_id, a.social_account_id, a.action
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:actions as text[]))
        as found (organization_id, account_id, action)
    join account_action a on a.organization_id = found.organization_id and a.social_account_id = found.account_id
        and a.action = found.action
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of an attempt: its settlement, and what the attempt was before."""

    settlement: Settlement
    before: str
    run: int
    start_time: datetime

    @property
    def after(self) -> AttemptState:
        return self.settlement.attempt_state

    @property
    def send(self) -> Send:
        job = self.settlement.job
        return Send(
            organization_id=job.organization_id,
            post_job_id=job.id,
            fence=self.settlement.fence,
            run=self.run,
            account_id=job.target.social_account_id,
            action=action_of_job(job),
            time=self.start_time,
        )


async def record_effects(connection: AsyncConnection, ends: Sequence[End], *, now: datetime) -> None:
    """Logs the ends of attempts, and corrects what is used of daily caps; the gates may not be locked yet."""
    logged = [
        (end.send, outcome)
        for end in ends
        if (outcome := outcome_of(end.before, end.after, end.settlement.error_reason)) is not None
    ]
    await _log(connection, logged, now)
    ends = [end for end in ends if counts_for_limits(end.settlement.job)]
    await give_back(connection, [end.send for end in ends if _had(end) and not _has(end)], now=now)
    # Proof that contradicts what was proven before: it is out after all, and was so since it began.
    found = [end.send for end in ends if _has(end) and not _had(end)]
    if found:
        await lock_gates_of(connection, found)
        await reserve_sends(connection, await _limited(connection, found))
    await note_sends(connection, [_ended(end, now) for end in ends if _has(end) and end.before == AttemptState.SENDING])


async def settle_effects(connection: AsyncConnection, settled: Sequence[Settlement], *, now: datetime) -> None:
    """Does the same for answers to attempts that a limit counts; their log is written with the settlement."""
    settled = [each for each in settled if counts_for_limits(each.job)]
    if settled:
        ends = [End(settlement=each, before=AttemptState.SENDING, run=each.job.run, start_time=now) for each in settled]
        await give_back(connection, [end.send for end in ends if not _has(end)], now=now)
        await note_sends(
            connection,
            [_ended(end, each.job.update_time) for end, each in zip(ends, settled, strict=True) if _has(end)],
        )


async def count_lost(connection: AsyncConnection, jobs: Sequence[PostJob], *, now: datetime) -> None:
    """Counts attempts that a restored copy lacks, the last one of each job: they have or may have had effect."""
    sends = [
        Send(
            organization_id=job.organization_id,
            post_job_id=job.id,
            fence=job.fence,
            run=job.run,
            account_id=job.target.social_account_id,
            action=action_of_job(job),
            time=job.last_attempt_time or now,
        )
        for job in jobs
        if counts_for_limits(job)
    ]
    if sends:
        await lock_gates_of(connection, sends)
        await reserve_sends(connection, await _limited(connection, sends))
        await note_sends(connection, sends)


async def _limited(connection: AsyncConnection, sends: Sequence[Send]) -> list[Send]:
    """Returns those that a claim would reserve: of posts, only those of accounts that have a cap for them."""
    names = {
        "organization_ids": [each.organization_id for each in sends],
        "account_ids": [each.account_id for each in sends],
        "actions": [each.action for each in sends],
    }
    rows = {tuple(row) for row in await connection.execute(_LIMITED, names)}
    return [
        each
        for each in sends
        if each.action is not Action.POST or (each.organization_id, each.account_id, each.action.value) in rows
    ]


async def _log(connection: AsyncConnection, logged: Sequence[tuple[Send, ActivityOutcome]], now: datetime) -> None:
    if logged:
        names = {
            "organization_ids": [send.organization_id for send, _ in logged],
            "account_ids": [send.account_id for send, _ in logged],
            "ids": [send.post_job_id for send, _ in logged],
            "fences": [send.fence for send, _ in logged],
            "actions": [send.action for send, _ in logged],
            "outcomes": [outcome for _, outcome in logged],
            "runs": [send.run for send, _ in logged],
        }
        await connection.execute(_LOG, names | {"now": now})


def _had(end: End) -> bool:
    return end.before in MAY_HAVE_EFFECT


def _has(end: End) -> bool:
    return end.after in MAY_HAVE_EFFECT


def _ended(end: End, time: datetime) -> Send:
    return replace(end.send, time=time)
