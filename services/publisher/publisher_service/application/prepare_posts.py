"""Has posts prepared by providers that do so before they publish: uploads, processing of media.

It is repeatable and invisible: a process that dies has prepared something that nobody will ever publish. The handle is
committed on the job's preparation before any claim can use it, and a claim uses it only for the bytes of which it was
made. While an attempt is open or of unknown outcome nothing is prepared: the handle that it may have published stays.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from opentelemetry import metrics

from publisher_service.adapters.postgres.jobs import lock_jobs, save_jobs
from publisher_service.adapters.postgres.preparations import (
    extend_lease,
    save_preparation,
    source_of,
    take_preparations,
)
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.provider import Provider, Providers
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.application.disconnection import disconnect
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.content import message_for
from publisher_service.domain.plan import released
from publisher_service.domain.post_job import OPEN_ATTEMPT, JobState, PostJob, Reason
from publisher_service.domain.preparation import (
    CredentialsInvalid,
    Delayed,
    Preparation,
    PreparationState,
    Preparing,
    Source,
    Unfit,
    after_answer,
    at_rest,
    is_of,
    is_settled,
)
from publisher_service.wire.contents import content_from
from publisher_service.wire.posts import post_job_changed
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient

_log = logging.getLogger(__name__)

_TAKEN = declare("publisher.prepare.taken")
_ANSWERED = declare("publisher.prepare.answered")
_RECORDED = declare("publisher.prepare.recorded")
_MARGIN = timedelta(seconds=5)
_meter = metrics.get_meter(__name__)
_answers = _meter.create_counter("postflow.publish.preparations", description="Answers about posts that are prepared")
_ANSWERS = ("processing", "ready", "void", "unfit", "delayed", "credentialsinvalid")


class PreparePosts:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        outbox: Outbox,
        providers: Providers,
        vault: Vault,
        on_ready: Callable[[], None],
    ) -> None:
        """`on_ready` is called when posts may go out that waited for their preparation."""
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._providers = providers
        self._vault = vault
        self._on_ready = on_ready
        self._after: dict[str, str] = {}
        for provider in self.providers:
            for answer in _ANSWERS:
                _answers.add(0, {"provider": provider.name, "answer": answer})

    @property
    def providers(self) -> Sequence[Provider]:
        """The providers that prepare posts."""
        return [provider for provider in self._providers if provider.prepares]

    async def take(self, provider: Provider, room: int, *, busy: Sequence[str] = ()) -> Sequence[Preparation]:
        """Takes preparations that are due, in turn over organizations; the first ones again after the last.

        Takes one of each organization at most, and none of those that are `busy`.
        """
        taken = await self._database.run(lambda tx: self._take(tx, provider, room, busy))
        self._after[provider.name] = max((each.organization_id for each in taken), default="")
        if taken:
            await failpoint(_TAKEN)
        return taken

    async def __call__(self, taken: Preparation) -> None:
        """Asks the provider about one preparation and records the answer."""
        async with self._database.statement() as connection:
            source = await source_of(connection, taken)
        answer = await self._answer(taken, source)
        if answer is not None:
            _answers.add(1, {"provider": taken.provider, "answer": type(answer).__name__.lower()})
        await failpoint(_ANSWERED)
        await self._database.run(lambda tx: self._record(tx, taken, source, answer))
        await failpoint(_RECORDED)

    async def _take(self, tx: Transaction, provider: Provider, room: int, busy: Sequence[str]) -> list[Preparation]:
        now = await self._clock.now(tx.connection)
        taken: list[Preparation] = []
        for after in (self._after.get(provider.name, ""), ""):
            taken = await take_preparations(
                tx.connection,
                provider.name,
                after=after,
                now=now,
                lease_end=now + _lease(provider),
                limit=room,
                busy=busy,
            )
            if taken or not after:
                break
        return taken

    async def _answer(self, taken: Preparation, source: Source) -> Preparing | None:
        """Returns what the provider says; None if there is nothing to ask."""
        provider = self._providers.get(source.provider)
        if provider is None or not provider.prepares or source.is_open or not (source.is_wanted and source.connected):
            return None
        if is_settled(taken, source, await self._now()):
            return None
        try:
            post = self._post(taken, source)
        except CredentialsUnreadable as error:
            return Delayed(message=str(error), retry_after=timedelta(seconds=30))
        except UnreadableMessage as error:
            return Unfit(reason="CONTENT_UNREADABLE", message=str(error))
        done = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(taken, provider, done))
            try:
                return await provider.prepare(post)
            finally:
                done.set()

    async def _keep(self, taken: Preparation, provider: Provider, done: asyncio.Event) -> None:
        """Extends the lease while the provider is asked: an upload may take long."""
        while not done.is_set():
            await wait(done, _lease(provider).total_seconds() / 3)
            if not done.is_set():
                await self._extend(taken, provider)

    async def _extend(self, taken: Preparation, provider: Provider) -> None:
        async def extend(tx: Transaction) -> None:
            lease_end = await self._clock.now(tx.connection) + _lease(provider)
            await extend_lease(tx.connection, taken, lease_end=lease_end)

        try:
            await self._database.run(extend)
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("the lease of a preparation is not extended, the database is unreachable: %r", error)

    async def _now(self) -> datetime:
        async with self._database.statement() as connection:
            return await self._clock.now(connection)

    def _post(self, taken: Preparation, source: Source) -> Post:
        names = {"organization_id": taken.organization_id, "account_id": taken.social_account_id}
        credentials = self._vault.open(source.credentials, **names)
        assert source.content is not None, "only bytes that are there are wanted"
        message = message_for(content_from(source.content), source.channel, source.part)
        if message is None:
            raise UnreadableMessage("the content of the draft has no such follow-up")
        # Of older bytes nothing is asked: what was made of them is left to itself.
        handle = taken.handle if is_of(taken, source) and taken.state is PreparationState.PROCESSING else ""
        return Post(
            external_account_id=source.external_account_id,
            access_token=credentials.access_token,
            channel=source.channel,
            destination=source.destination,
            text=message.text,
            idempotency_key=f"{taken.post_job_id}-{source.run}",
            handle=handle,
            title=message.title,
            link=message.link,
            media=message.media,
            follows=source.follows,
            settings=source.settings,
            organization_id=taken.organization_id,
        )

    async def _record(self, tx: Transaction, taken: Preparation, source: Source, answer: Preparing | None) -> None:
        now = await self._clock.now(tx.connection)
        # First the job: a claim that has read an older state of the preparation holds this lock, and its second look
        # sees what was committed before.
        (job,) = await lock_jobs(tx.connection, [taken.job_key])
        after = at_rest(taken)
        # An attempt may have begun meanwhile, with the handle as it is.
        if answer is not None and job.state not in OPEN_ATTEMPT:
            limits = self._providers[source.provider].limits
            after = after_answer(taken, answer, source, now=now, again=limits.check_again, life=limits.handle_life)
        if not await save_preparation(tx.connection, after):
            return
        if after.next_time is None:
            await self._release(tx, job, now)
        if isinstance(answer, CredentialsInvalid):
            await disconnect(
                tx,
                self._outbox,
                (taken.organization_id, taken.social_account_id),
                credentials=source.credentials,
                error_message=answer.message,
                now=now,
            )

    async def _release(self, tx: Transaction, job: PostJob, now: datetime) -> None:
        """Has the job claimed again, if it waits for this: the claim says whether it is sent, and else why not."""
        if job.state is not JobState.WAITING or job.state_reason != Reason.MEDIA:
            return
        ready = released(job, now=now)
        await save_jobs(tx.connection, [ready])
        await self._outbox.append(tx, [post_job_changed(ready)], now=now)
        tx.after_commit(partial(write_outcomes, [ready]))
        tx.after_commit(self._on_ready)


def _lease(provider: Provider) -> timedelta:
    return provider.time_limit + _MARGIN
