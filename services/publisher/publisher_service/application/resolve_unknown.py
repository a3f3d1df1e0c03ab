"""Looks up a post whose answer was lost: asks the provider, and accepts only proof."""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from publisher_service.adapters.postgres.accounts import credentials_of
from publisher_service.adapters.postgres.attempts import DoubtfulAttempt, close_attempts, doubtful_attempt
from publisher_service.adapters.postgres.jobs import lock_jobs, save_jobs
from publisher_service.adapters.postgres.kept_contents import sent_content
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.application.disconnection import disconnect
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.content import text_for
from publisher_service.domain.outcome import AuthRefused, Finding, Found, NoProof
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.settlement import AttemptState, resolve
from publisher_service.wire.contents import content_from
from publisher_service.wire.posts import post_job_changed
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.transient import is_transient

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """A finding, and the attempt and the credentials of the look."""

    finding: Finding
    provider: str
    credentials: bytes
    attempt: DoubtfulAttempt | None


class ResolveUnknown:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        outbox: Outbox,
        providers: Providers,
        vault: Vault,
        policies: Callable[[str], Policy],
        late: LateEvidence,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`policies` returns the policy of a provider by its name."""
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._providers = providers
        self._vault = vault
        self._policies = policies
        self._late = late
        self._draw = draw

    async def __call__(self, question: PostJob) -> None:
        """Looks a job up and records the finding. The sweep has put off the next look, so no other process asks."""
        looked = await self._look(question)
        try:
            await self._database.run(lambda tx: self._record(tx, question, looked))
        except Exception as error:
            if is_transient(error):
                raise
            # Recorded as a look without proof, so that the deadline still counts.
            _log.exception("the finding about post job %s cannot be recorded", question.id)
            nothing = replace(
                looked, finding=NoProof(message=f"the finding cannot be recorded: {type(error).__name__}")
            )
            await self._database.run(lambda tx: self._record(tx, question, nothing))

    async def _look(self, question: PostJob) -> _Looked:
        organization_id, account_id = question.organization_id, question.target.social_account_id
        async with self._database.statement() as connection:
            name, external_account_id, sealed = await credentials_of(connection, organization_id, account_id)
            attempt = await doubtful_attempt(connection, question)
            content = await sent_content(connection, organization_id, question.id)

        def looked(finding: Finding) -> _Looked:
            return _Looked(finding=finding, provider=name, credentials=sealed, attempt=attempt)

        provider = self._providers.get(name)
        if provider is None:
            return looked(NoProof(message=f"this release does not have the provider {name}"))
        if attempt is None:
            return looked(NoProof(message="no attempt of the run is of unknown outcome"))
        try:
            token = self._vault.open(sealed, organization_id=organization_id, account_id=account_id)
        except CredentialsUnreadable as error:
            return looked(NoProof(message=str(error)))
        post = Post(
            external_account_id=external_account_id,
            access_token=token,
            channel=question.target.channel,
            destination=question.target.destination,
            text=_text(content, question.target.channel),
            idempotency_key=attempt.idempotency_key,
        )
        return looked(await provider.look(post))

    async def _record(self, tx: Transaction, question: PostJob, looked: _Looked) -> None:
        now = await self._clock.now(tx.connection)
        (job,) = await lock_jobs(tx.connection, [question.key])
        if job.state is not JobState.UNKNOWN or job.fence != question.fence:
            if isinstance(looked.finding, Found) and looked.attempt is not None:
                await self._late(tx, [(job, looked.attempt.fence, looked.finding)], now=now)
            return
        settlement = resolve(
            job,
            looked.finding,
            policy=self._policies(looked.provider),
            now=now,
            draw=self._draw(),
            since=looked.attempt.since if looked.attempt else None,
        )
        after = settlement.job
        if looked.attempt and settlement.attempt_state in (AttemptState.ACCEPTED, AttemptState.ABSENT):
            closed = replace(settlement, attempt_fence=looked.attempt.fence)
            await close_attempts(tx.connection, [closed], now=now)
        await save_jobs(tx.connection, [after])
        if after.version > job.version:
            tx.after_commit(partial(write_outcomes, [after]))
            await self._outbox.append(tx, [post_job_changed(after)], now=now)
        if isinstance(looked.finding, AuthRefused):
            await disconnect(
                tx,
                self._outbox,
                (job.organization_id, job.target.social_account_id),
                credentials=looked.credentials,
                error_message=looked.finding.message,
                now=now,
            )


def _text(content: bytes | None, channel: str) -> str:
    """Returns an empty text if the bytes are lost: the adapter looks with what it has."""
    try:
        return text_for(content_from(content), channel) if content is not None else ""
    except UnreadableMessage:
        return ""
