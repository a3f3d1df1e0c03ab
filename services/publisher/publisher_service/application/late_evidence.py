"""Records proof of a post whose job has moved on, and reports proof that contradicts what is recorded."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from opentelemetry import metrics

from publisher_service.adapters.postgres.attempts import abandon_attempts, close_attempts
from publisher_service.adapters.postgres.jobs import save_jobs
from publisher_service.adapters.postgres.resolutions import denied_attempts
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.outcome import Accepted, Found
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.settlement import Settlement, evidence
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_meter = metrics.get_meter(__name__)
_duplicates = from_zero(
    _meter.create_counter(
        "postflow.publish.duplicates_detected",
        description="Posts that are out twice, under two names: someone must look at once",
    )
)
_contradictions = from_zero(
    _meter.create_counter(
        "postflow.publish.contradicted_persons",
        description="Proofs that a post is out, although a person has said otherwise",
    )
)

# A job, the fence of the attempt that the proof is about, and the proof.
Proof = tuple[PostJob, int, Accepted | Found]


class LateEvidence:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def __call__(self, tx: Transaction, proofs: Sequence[Proof], *, now: datetime) -> None:
        """Records proofs about jobs that this transaction has locked and read."""
        if not proofs:
            return
        denied = await denied_attempts(
            tx.connection, [(job.organization_id, job.id, fence) for job, fence, _ in proofs]
        )
        jobs = {job.key: job for job, _, _ in proofs}
        proven: list[Settlement] = []
        for first, fence, proof in proofs:
            key = first.key
            job = jobs[key]
            if job.state is JobState.PUBLISHED:
                _compare(job, proof)
                continue
            if (*key, fence) in denied:
                _contradictions.add(1)
                _log.critical(
                    "post job %s is out as %s, though a person said that it is not", job.id, proof.external_id
                )
            # The proof is about the attempt that brought it, not about one that may have followed.
            settled = replace(evidence(job, proof, now=now), attempt_fence=fence)
            jobs[key] = settled.job
            proven.append(settled)
        # In this order: a job has no two attempts that are open or accepted.
        await abandon_attempts(tx.connection, proven, now=now)
        await close_attempts(tx.connection, proven, now=now)
        await save_jobs(tx.connection, [each.job for each in proven])
        await self._outbox.append(tx, [post_job_changed(each.job) for each in proven], now=now)
        tx.after_commit(partial(write_outcomes, [each.job for each in proven]))


def _compare(job: PostJob, proof: Accepted | Found) -> None:
    if job.external_id == proof.external_id:
        return
    if job.evidence_kind == "PERSON":
        same = not job.external_id and job.external_url in ("", proof.external_url)
        if not same:
            _contradictions.add(1)
            _log.critical(
                "post job %s is out as %s, a person said %s",
                job.id,
                proof.external_id,
                job.external_id or job.external_url,
            )
        return
    _duplicates.add(1)
    _log.critical("post job %s is out twice: %s and %s", job.id, job.external_id, proof.external_id)
