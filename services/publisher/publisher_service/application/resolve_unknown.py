"""Finds out what became of a post whose answer was lost: asks the provider, and believes only proof."""

import logging
from collections.abc import Callable, Mapping

from publisher_service.adapters.postgres import accounts, store
from publisher_service.adapters.providers.provider import Post, Provider
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.domain.outcome import Finding, NoProof
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.settlement import resolve
from publisher_service.wire import post_job_changed
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

log = logging.getLogger(__name__)


class ResolveUnknown:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        outbox: Outbox,
        providers: Mapping[str, Provider],
        vault: Vault,
        wake_sweep: Callable[[], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._providers = providers
        self._vault = vault
        self._wake_sweep = wake_sweep

    async def __call__(self, question: PostJob) -> None:
        """The sweep has put the next look off, so nobody else asks meanwhile."""
        finding = await self._look(question)
        log.info("post job %s: the look-up says %s", question.id, type(finding).__name__)
        await self._database.run(lambda tx: self._record(tx, question, finding))

    async def _look(self, question: PostJob) -> Finding:
        organization_id, account_id = question.organization_id, question.target.social_account_id
        async with self._database.read() as connection:
            name, external_account_id, sealed = await accounts.credentials_of(connection, organization_id, account_id)
            key = await store.open_idempotency_key(connection, question)
        if key is None:
            return NoProof(message="the question has been answered meanwhile")
        try:
            token = self._vault.open(sealed, organization_id=organization_id, account_id=account_id)
        except CredentialsUnreadable as error:
            return NoProof(message=str(error))
        post = Post(
            external_account_id=external_account_id,
            access_token=token,
            channel=question.target.channel,
            destination=question.target.destination,
            text="",
            idempotency_key=key,
        )
        return await self._providers[name].look(post)

    async def _record(self, tx: Transaction, question: PostJob, finding: Finding) -> None:
        now = await self._clock.now(tx.connection)
        job = next(iter(await store.lock_jobs(tx.connection, [(question.organization_id, question.id)])))
        if job.state is not JobState.UNKNOWN or job.fence != question.fence:
            return
        settlement = resolve(job, finding, now=now)
        if settlement is None:
            return
        after = settlement.job
        await store.close_attempts(tx.connection, [settlement], now=now)
        await store.save_jobs(tx.connection, [after])
        await self._outbox.append(tx, [post_job_changed(after)], now=now)
        if after.state is JobState.READY:
            tx.after_commit(self._wake_sweep)
