"""Records the outcomes of requests: attempt, job, activity and announcement, in one transaction per batch."""

import itertools
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from opentelemetry import metrics

from publisher_service.adapters.postgres.attempts import close_attempts
from publisher_service.adapters.postgres.effects import settle_effects
from publisher_service.adapters.postgres.freeing import put_back
from publisher_service.adapters.postgres.jobs import lock_jobs, save_jobs
from publisher_service.adapters.postgres.kept_contents import keep_contents
from publisher_service.adapters.postgres.provider_quotas import close_channels, close_providers
from publisher_service.adapters.postgres.settle import SettleRow, record_settlements
from publisher_service.application.destination_log import report_deactivated
from publisher_service.application.disconnection import disconnect
from publisher_service.application.late_evidence import LateEvidence, Proof
from publisher_service.application.post_log import write_outcomes
from publisher_service.application.recognition import is_of_another
from publisher_service.application.send_post import Sent
from publisher_service.domain.activity import outcome_of
from publisher_service.domain.outcome import OUTCOME_LABELS, Accepted, Ambiguous, NotBegun, NotSent, Rejected, label
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.settlement import (
    AttemptState,
    Settlement,
    settle_within_budget,
    uncertain,
    unsent_after_all,
)
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_BEFORE_COMMIT = declare("publisher.settle.before_commit")
_COMMITTED = declare("publisher.settle.committed")
_LATE = declare("publisher.settle.late_answer")
_meter = metrics.get_meter(__name__)
_set_aside = from_zero(
    _meter.create_counter(
        "postflow.publish.answers_set_aside", description="Answers that could not be recorded as they were"
    )
)
_outcomes = _meter.create_counter("postflow.publish.outcomes", description="Requests to providers by outcome")


class SettlePosts:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ids: IdSource,
        outbox: Outbox,
        policies: Callable[[str], Policy],
        late: LateEvidence,
        providers: Iterable[str] = (),
        wake_lines: Callable[[], None],
        on_closed: Callable[[], None] = lambda: None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`policies` returns the policy of one of `providers`; `wake_lines` is called when a line has its turn."""
        self._database = database
        self._clock = clock
        self._ids = ids
        self._outbox = outbox
        self._policies = policies
        self._late = late
        self._wake_lines = wake_lines
        self._on_closed = on_closed
        self._draw = draw
        for provider, outcome in itertools.product(providers, OUTCOME_LABELS):
            _outcomes.add(0, {"provider": provider, "outcome": outcome})

    async def __call__(self, batch: Sequence[Sent]) -> list[PostJob]:
        """Returns the jobs as they are now, one per request."""
        if any(map(_is_by_text, batch)):
            batch = [await self._own(sent) for sent in batch]
        ordered = sorted(batch, key=lambda sent: (sent.claimed.job.organization_id, sent.claimed.job.id))
        settled = {id(sent): self._settled(sent) for sent in ordered}
        await self._record_all(ordered, settled)
        for (provider, outcome), count in Counter(map(_kind, batch)).items():
            _outcomes.add(count, {"provider": provider, "outcome": outcome})
        return [settled[id(sent)].job for sent in batch]

    async def _own(self, sent: Sent) -> Sent:
        """Returns the request; a post that it named by the text is no proof if that may be another job's."""
        proof, job = sent.outcome, sent.claimed.job
        if not isinstance(proof, Accepted) or not proof.is_by_text:
            return sent
        async with self._database.statement() as connection:
            if not await is_of_another(connection, job, proof.external_id):
                return sent
        if proof.own_id:
            named = replace(proof, external_id=proof.own_id, external_url="", publish_time=None)
            return replace(sent, outcome=named)
        message = f"the provider names {proof.external_id}, which may be another post of the account with the same text"
        return replace(sent, outcome=Rejected(reason="POST_OF_ANOTHER", message=message))

    def _settled(self, sent: Sent) -> Settlement:
        policy = self._policies(sent.claimed.provider)
        try:
            return settle_within_budget(
                sent.claimed.job,
                sent.outcome,
                failures=sent.claimed.failures,
                policy=policy,
                now=sent.time,
                draw=self._draw(),
            )
        except Exception as error:  # noqa: BLE001 - one outcome that cannot be decided must not end the process
            return self._set_aside(sent, error)

    async def _record_all(self, batch: Sequence[Sent], settled: dict[int, Settlement]) -> None:
        """Records the batch. If a row cannot be stored, finds it by halving the batch and sets it aside."""
        try:
            await self._database.run(lambda tx: self._record(tx, batch, [settled[id(sent)] for sent in batch]))
        except Exception as error:
            if is_transient(error):
                raise
            if len(batch) > 1:
                middle = len(batch) // 2
                await self._record_all(batch[:middle], settled)
                await self._record_all(batch[middle:], settled)
            else:
                await self._record_doubt(batch[0], settled, error)
        else:
            await failpoint(_COMMITTED)

    async def _record_doubt(self, sent: Sent, settled: dict[int, Settlement], error: Exception) -> None:
        """Records an answer that cannot be stored as an unknown outcome. If that fails too, leaves it to the lease."""
        aside = self._set_aside(sent, error)
        try:
            await self._database.run(lambda tx: self._record(tx, [sent], [aside]))
        except Exception as again:
            if is_transient(again):
                raise
            _log.exception("post job %s is left to the end of its lease", sent.claimed.job.id)
        else:
            settled[id(sent)] = aside
            await failpoint(_COMMITTED)

    def _set_aside(self, sent: Sent, error: Exception) -> Settlement:
        _set_aside.add(1)
        _log.error("the answer for post job %s cannot be recorded", sent.claimed.job.id, exc_info=error)
        policy = self._policies(sent.claimed.provider)
        message = f"the answer could not be recorded: {type(error).__name__}"
        return uncertain(sent.claimed.job, "NOT_RECORDED", message, policy=policy, now=sent.time)

    async def _record(self, tx: Transaction, batch: Sequence[Sent], settlements: Sequence[Settlement]) -> None:
        now = await self._clock.now(tx)
        rows = [
            SettleRow(settlement=each, activity_id=self._ids.new(), outcome=_activity(each)) for each in settlements
        ]
        settled = await record_settlements(tx, rows, now=now)
        if settled.wakes:
            tx.after_commit(self._wake_lines)
        if settled.deactivated:
            tx.after_commit(partial(report_deactivated, settled.deactivated))
        await put_back(tx.connection, settlements, now=now)
        limited = [
            row.settlement
            for sent, row in zip(batch, rows, strict=True)
            if row.activity_id in settled.counted
            or (sent.claimed.is_limited and row.activity_id in settled.activity_ids)
        ]
        await settle_effects(tx.connection, limited, now=now)
        recorded = [row.settlement.job for row in rows if row.activity_id in settled.activity_ids]
        await self._outbox.append(tx, [post_job_changed(job) for job in recorded], now=now)
        tx.after_commit(partial(write_outcomes, recorded))
        await self._close(tx, batch, settlements)
        await close_channels(
            tx.connection, [row.settlement for row in rows if row.activity_id in settled.activity_ids], now=now
        )
        if doubtful := [each.claimed for each in batch if isinstance(each.outcome, Ambiguous)]:
            await keep_contents(tx.connection, doubtful)
        if len(recorded) < len(batch):
            late = [sent for sent, row in zip(batch, rows, strict=True) if row.activity_id not in settled.activity_ids]
            await self._record_late(tx, late, now)
        for sent, each in zip(batch, settlements, strict=True):
            if each.disconnects:
                await disconnect(
                    tx,
                    self._outbox,
                    (each.job.organization_id, each.job.target.social_account_id),
                    credentials=sent.claimed.credentials,
                    error_message=each.error_message,
                    now=now,
                )
        await failpoint(_BEFORE_COMMIT)

    async def _close(self, tx: Transaction, batch: Sequence[Sent], settlements: Sequence[Settlement]) -> None:
        """Closes providers that have said that the quota of the application is used up, in every process."""
        closed = {
            sent.claimed.provider: each.closed_until
            for sent, each in zip(batch, settlements, strict=True)
            if each.closed_until is not None
        }
        if closed:
            await close_providers(tx.connection, closed)
            tx.after_commit(self._on_closed)

    async def _record_late(self, tx: Transaction, late: Sequence[Sent], now: datetime) -> None:
        """Records what the answers to attempts whose lease has ended still prove."""
        keys = [(sent.claimed.job.organization_id, sent.claimed.job.id) for sent in late]
        jobs = {job.key: job for job in await lock_jobs(tx.connection, keys)}
        unsent = [
            self._unsent(sent, jobs[key], now)
            for sent, key in zip(late, keys, strict=True)
            if _is_unsent(sent, jobs[key])
        ]
        await close_attempts(tx.connection, unsent, now=now)
        await save_jobs(tx.connection, [each.job for each in unsent])
        await put_back(tx.connection, unsent, now=now)
        await self._outbox.append(tx, [post_job_changed(each.job) for each in unsent], now=now)
        tx.after_commit(partial(write_outcomes, [each.job for each in unsent]))
        jobs |= {(each.job.organization_id, each.job.id): each.job for each in unsent}
        proofs: list[Proof] = []
        for sent, key in zip(late, keys, strict=True):
            if isinstance(sent.outcome, Accepted):
                proofs.append((jobs[key], sent.claimed.job.fence, sent.outcome))
            else:
                _log.info("post job %s: the answer came late (%s)", sent.claimed.job.id, label(sent.outcome))
        await self._late(tx, proofs, now=now)
        await failpoint(_LATE)

    def _unsent(self, sent: Sent, job: PostJob, now: datetime) -> Settlement:
        assert isinstance(sent.outcome, NotBegun | NotSent)
        policy = self._policies(sent.claimed.provider)
        return unsent_after_all(
            job, sent.outcome, in_doubt=sent.claimed.job.in_doubt, policy=policy, now=now, draw=self._draw()
        )


def _is_unsent(sent: Sent, job: PostJob) -> bool:
    """Returns whether the job is UNKNOWN because of this very attempt, which has sent nothing after all."""
    is_last = job.state is JobState.UNKNOWN and job.fence == sent.claimed.job.fence
    return is_last and isinstance(sent.outcome, NotBegun | NotSent)


def _is_by_text(sent: Sent) -> bool:
    return isinstance(sent.outcome, Accepted) and sent.outcome.is_by_text


def _kind(sent: Sent) -> tuple[str, str]:
    return sent.claimed.provider, label(sent.outcome)


def _activity(settlement: Settlement) -> str:
    """Returns the entry of the account's activity; empty for an attempt that was never sent."""
    return outcome_of(AttemptState.SENDING, settlement.attempt_state, settlement.error_reason) or ""
