"""ExplainPostJob: what keeps a post back, by the checks that a claim makes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from channels.rules import ChannelRules, FollowUpKind
from publisher_service.adapters.postgres.accounts import providers_of
from publisher_service.adapters.postgres.explanations import check_job, count_posts_before
from publisher_service.adapters.postgres.jobs import get_job
from publisher_service.adapters.postgres.lines import first_in_lines
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.application.marks import Marks
from publisher_service.domain.claim import Command, Lane, command_of
from publisher_service.domain.explanation import Beside, Explanation, Found, explain
from publisher_service.domain.limits import DEFAULTS, LimitDefaults
from publisher_service.domain.post_job import PostJob
from servicekit.faults import NotFound
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

Rules = Mapping[str, Mapping[str, ChannelRules]]

_NO_RULES: Rules = {}
_NEVER = datetime.max.replace(tzinfo=UTC)


class ExplainPostJob:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        vault: Vault,
        lanes: Callable[[], Sequence[Lane]],
        marks: Marks,
        rules: Rules = _NO_RULES,
        limits: LimitDefaults = DEFAULTS,
    ) -> None:
        """`lanes` returns the room that each provider has in this process; `rules` are those of its channels."""
        self._database = database
        self._clock = clock
        self._vault = vault
        self._lanes = lanes
        self._marks = marks
        self._rules = rules
        self._limits = limits

    async def __call__(self, organization_id: str, job_id: str) -> Explanation:
        async with self._database.snapshot() as session:
            job = await get_job(session.connection, organization_id, job_id)
            if job is None:
                raise NotFound("POST_JOB_NOT_FOUND", "there is no such post job", metadata={"post_job_id": job_id})
            now = await self._clock.now(session.connection)
            # The line asks for its first post only; it has let the others behind.
            heads = await first_in_lines(session.connection, [job.account_key])
            is_first = any(head.id == job.id for head in heads)
            found, credentials = await check_job(
                session,
                _command(job, now),
                self._lanes(),
                now=now,
                from_line=is_first,
                marks=self._marks.known,
                limits=self._limits,
                posts_before=0 if is_first else await count_posts_before(session, job),
            )
            providers = await providers_of(session, [job.account_key]) if job.part else {}
        found.append(self._credentials(job, credentials))
        return explain(job, found, now=now, kind=self._kind(job, providers.get(job.account_key, "")))

    def _kind(self, job: PostJob, provider: str) -> FollowUpKind:
        rules = self._rules.get(provider, {}).get(job.target.channel)
        return rules.follow_ups.kind if rules and rules.follow_ups else FollowUpKind.COMMENT

    def _credentials(self, job: PostJob, sealed: bytes | None) -> Found:
        """Checks what only the send finds out."""
        return Found(
            name="CREDENTIALS",
            verdict=Beside.CREDENTIALS_UNREADABLE,
            is_open=bool(sealed) and not self._opens(job, sealed or b""),
            applies=bool(sealed),
            values={},
        )

    def _opens(self, job: PostJob, sealed: bytes) -> bool:
        account_id = job.target.social_account_id
        try:
            self._vault.open(sealed, organization_id=job.organization_id, account_id=account_id)
        except CredentialsUnreadable:
            return False
        return True


def _command(job: PostJob, now: datetime) -> Command:
    """Returns the command of the job; without a time, that of a slot that was due now."""
    if job.schedule_time is None or job.not_after is None:
        job = replace(job, schedule_time=job.schedule_time or now, not_after=job.not_after or _NEVER)
    return command_of(job)
