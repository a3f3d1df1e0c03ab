"""Looks up a post whose answer was lost: asks the provider, and accepts only proof."""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from publisher_service.adapters.postgres.accounts import credentials_of
from publisher_service.adapters.postgres.attempts import (
    DoubtfulAttempt,
    close_attempts,
    doubtful_attempt,
)
from publisher_service.adapters.postgres.jobs import lock_jobs, save_jobs
from publisher_service.adapters.postgres.kept_contents import sent_content
from publisher_service.adapters.postgres.preparations import handle_of, is_only_handle, void_preparation
from publisher_service.adapters.postgres.safe_modes import active_safe_mode
from publisher_service.adapters.providers.adapter import Post, Proof
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.application.disconnection import disconnect
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.post_log import write_outcomes
from publisher_service.application.recognition import is_of_another
from publisher_service.domain.content import Content, message_for
from publisher_service.domain.credentials import ERASED
from publisher_service.domain.outcome import Absent, AuthRefused, Finding, Found, NoProof
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.settlement import AttemptState, resolve
from publisher_service.wire.contents import content_from
from publisher_service.wire.posts import post_job_changed
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.transient import is_transient

_log = logging.getLogger(__name__)

_BEGUN = declare("publisher.look.begun")
_LOOKED = declare("publisher.look.looked")
_RECORDED = declare("publisher.look.recorded")


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
        await failpoint(_BEGUN)
        looked = await self._look(question)
        await failpoint(_LOOKED)
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
        await failpoint(_RECORDED)

    async def _look(self, question: PostJob) -> _Looked:
        organization_id, account_id = question.organization_id, question.target.social_account_id
        async with self._database.statement() as connection:
            name, external_account_id, settings, sealed = await credentials_of(connection, organization_id, account_id)
            attempt = await doubtful_attempt(connection, question)
            encoded = await sent_content(connection, organization_id, question.id)
            is_prepared = (found := self._providers.get(name)) is not None and found.prepares
            handle = await handle_of(connection, question.key) if is_prepared else ""

        def looked(finding: Finding) -> _Looked:
            return _Looked(finding=finding, provider=name, credentials=sealed, attempt=attempt)

        if not name:
            return looked(NoProof(message="the account is not here: a restored database has lost it"))
        provider = self._providers.get(name)
        if provider is None:
            return looked(NoProof(message=f"this release does not have the provider {name}"))
        if attempt is None:
            return looked(NoProof(message="no attempt of the run is of unknown outcome"))
        try:
            credentials = self._vault.open(sealed, organization_id=organization_id, account_id=account_id)
        except CredentialsUnreadable as error:
            return looked(NoProof(message=str(error)))
        if credentials == ERASED:
            erased = "the account was disconnected, and its credentials are erased: nobody can look the post up"
            return looked(NoProof(message=erased))
        content = _content(encoded)
        sent = message_for(content, question.target.channel, question.part) if content else None
        post = Post(
            external_account_id=external_account_id,
            access_token=credentials.access_token,
            channel=question.target.channel,
            destination=question.target.destination,
            text=sent.text if sent else "",
            idempotency_key=attempt.idempotency_key,
            since=attempt.since,
            handle=handle,
            schedule_time=question.schedule_time,
            title=sent.title if sent else "",
            link=sent.link if sent else "",
            media=sent.media if sent else (),
            follows=question.follows,
            settings=settings,
            organization_id=organization_id,
        )
        return looked(await provider.look(post))

    async def _record(self, tx: Transaction, question: PostJob, looked: _Looked) -> None:
        now = await self._clock.now(tx.connection)
        (job,) = await lock_jobs(tx.connection, [question.key])
        looked = await self._of_its_handle(tx, job, await self._recognized(tx, job, looked), now)
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
        if isinstance(looked.finding, Absent) and looked.finding.handle_is_void:
            await void_preparation(tx.connection, job.key, now=now)
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

    async def _of_its_handle(self, tx: Transaction, job: PostJob, looked: _Looked, now: datetime) -> _Looked:
        """Returns the finding; on a restored database the absence of what one handle names may prove nothing.

        Another handle may have been made since the copy, and published.
        """
        provider = self._providers.get(looked.provider)
        by_handle = provider is not None and provider.proof is Proof.CHECKABLE
        if not by_handle or not isinstance(looked.finding, Absent) or await active_safe_mode(tx) is None:
            return looked
        if not looked.finding.handle_is_void and await is_only_handle(tx.connection, job.key, now=now):
            return looked
        lost = "the database was restored: what was published may be another than the copy knows"
        return replace(looked, finding=NoProof(message=lost))

    async def _recognized(self, tx: Transaction, job: PostJob, looked: _Looked) -> _Looked:
        """Returns the finding; a post that was recognized by its text proves nothing if it may be another one's."""
        provider = self._providers.get(looked.provider)
        found, is_lookup = looked.finding, provider is not None and provider.proof is Proof.LOOKUP
        if looked.attempt is None or not isinstance(found, Found) or not (is_lookup or found.is_by_text):
            return looked
        if not await is_of_another(tx.connection, job, found.external_id):
            return looked
        if found.own_id:
            return replace(looked, finding=Found(external_id=found.own_id, external_url=""))
        return replace(looked, finding=NoProof(message="another post of the account has the same text"))


def _content(encoded: bytes | None) -> Content | None:
    """Returns None if the bytes are lost: the adapter looks with what it has."""
    try:
        return content_from(encoded) if encoded is not None else None
    except UnreadableMessage:
        return None
