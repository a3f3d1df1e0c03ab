"""Records what came of requests: attempt, job, activity and announcement in one transaction per batch."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from opentelemetry import metrics

from publisher_service.adapters.postgres import accounts, hot, line, store
from publisher_service.adapters.postgres.hot import SettleRow
from publisher_service.application.send_post import Sent
from publisher_service.domain.account import AccountReason, AccountState, disconnected
from publisher_service.domain.outcome import Accepted, Found
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.settlement import AttemptState, Settlement, evidence, settle
from publisher_service.wire import account_disconnected, post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

log = logging.getLogger(__name__)

_BEFORE_COMMIT = declare("publisher.settle.before_commit")
_meter = metrics.get_meter(__name__)
_outcomes = _meter.create_counter("postflow.publish.outcomes", description="Requests to providers by outcome")
_duplicates = _meter.create_counter(
    "postflow.publish.duplicates_detected", description="Posts that are out under two names: somebody must look at once"
)


class SettlePosts:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ids: IdSource,
        outbox: Outbox,
        policy: Policy,
        wake_lines: Callable[[], None],
    ) -> None:
        """`wake_lines` is called when the line of an account has its turn."""
        self._database = database
        self._clock = clock
        self._ids = ids
        self._outbox = outbox
        self._policy = policy
        self._wake_lines = wake_lines

    async def __call__(self, batch: Sequence[Sent]) -> list[PostJob]:
        """The jobs as they are now, one per request."""
        ordered = sorted(batch, key=lambda sent: (sent.claimed.job.organization_id, sent.claimed.job.id))
        settled = {
            id(sent): settle(sent.claimed.job, sent.outcome, policy=self._policy, now=sent.time) for sent in ordered
        }
        await self._database.run(lambda tx: self._record(tx, ordered, [settled[id(sent)] for sent in ordered]))
        for (provider, outcome), count in Counter(map(_kind, batch)).items():
            _outcomes.add(count, {"provider": provider, "outcome": outcome})
        return [settled[id(sent)].job for sent in batch]

    async def _record(self, tx: Transaction, batch: Sequence[Sent], settlements: Sequence[Settlement]) -> None:
        now = await self._clock.now(tx.connection)
        events = self._outbox.rows([post_job_changed(each.job) for each in settlements], now=now)
        rows = [
            SettleRow(
                settlement=each,
                activity_id=self._ids.new(),
                outcome=_activity(each),
                event_id=event.event_id,
                event_subject=event.subject,
                event_payload=event.payload,
            )
            for each, event in zip(settlements, events, strict=True)
        ]
        settled = await hot.settle(tx.connection, rows, now=now)
        positions = settled.positions
        if settled.wakes:
            tx.after_commit(self._wake_lines)
        stored = [replace(event, position=positions[event.event_id]) for event in events if event.event_id in positions]
        self._outbox.stored(tx, stored)
        if len(stored) < len(batch):
            late = [sent for sent, event in zip(batch, events, strict=True) if event.event_id not in positions]
            await self._record_late(tx, late, now)
        for sent, each in zip(batch, settlements, strict=True):
            if each.disconnects:
                await self._disconnect(tx, sent, each, now)
        await failpoint(_BEFORE_COMMIT)

    async def _record_late(self, tx: Transaction, late: Sequence[Sent], now: datetime) -> None:
        """Tries that are no longer their job's open one. What they prove is recorded all the same."""
        keys = [(sent.claimed.job.organization_id, sent.claimed.job.id) for sent in late]
        jobs = {(job.organization_id, job.id): job for job in await store.lock_jobs(tx.connection, keys)}
        proven: list[PostJob] = []
        tries: list[Settlement] = []
        for sent, key in zip(late, keys, strict=True):
            job = jobs[key]
            if not isinstance(sent.outcome, Accepted):
                log.info("post job %s: a late answer proves nothing (%s)", job.id, type(sent.outcome).__name__)
            elif job.state is not JobState.PUBLISHED:
                found = Found(external_id=sent.outcome.external_id, external_url=sent.outcome.external_url)
                proof = evidence(job, found, now=now)
                jobs[key] = proof.job
                proven.append(proof.job)
                # The proof belongs to the try that brought it, not to one that may have followed.
                tries.append(replace(proof, job=replace(proof.job, fence=sent.claimed.job.fence)))
            elif job.external_id != sent.outcome.external_id:
                _duplicates.add(1)
                log.critical("post job %s is out twice: %s and %s", job.id, job.external_id, sent.outcome.external_id)
        await store.close_attempts(tx.connection, tries, now=now)
        await store.abandon_attempts(tx.connection, tries, now=now)
        await store.save_jobs(tx.connection, proven)
        await self._outbox.append(tx, [post_job_changed(job) for job in proven], now=now)

    async def _disconnect(self, tx: Transaction, sent: Sent, refused: Settlement, now: datetime) -> None:
        organization_id, account_id = refused.job.organization_id, refused.job.target.social_account_id
        account = await accounts.lock(tx.connection, organization_id, account_id)
        if account is None or account.state is AccountState.DISCONNECTED:
            return
        *_, credentials = await accounts.credentials_of(tx.connection, organization_id, account_id)
        if credentials != sent.claimed.credentials:
            # Connected again while this attempt was out: what was refused is not what the account has now.
            await line.set_connection(
                tx.connection, organization_id, account_id, provider=account.provider, connected=True, now=now
            )
            return
        gone = disconnected(account, AccountReason.CREDENTIALS_REFUSED, refused.error_message, now=now)
        await accounts.save(tx.connection, gone)
        await line.set_connection(
            tx.connection, organization_id, account_id, provider=account.provider, connected=False, now=now
        )
        await self._outbox.append(tx, [account_disconnected(gone, refused.error_message)], now=now)


def _kind(sent: Sent) -> tuple[str, str]:
    return sent.claimed.provider, type(sent.outcome).__name__


def _activity(settlement: Settlement) -> str:
    """What the account's log of actions says: nothing of a try that was never sent or is still a question."""
    match settlement.attempt_state:
        case AttemptState.ACCEPTED:
            return "SUCCESS"
        case AttemptState.REJECTED:
            return "FAILED"
        case AttemptState.NOT_SENT if settlement.error_reason == "RATE_LIMITED":
            return "RATE_LIMITED"
        case _:
            return ""
