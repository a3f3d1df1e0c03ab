"""Sends one claimed post: one request, after a last look at holds, and at the time that the lease leaves for it."""

import logging
from dataclasses import replace
from datetime import datetime

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, StatusCode

from publisher_service.adapters.postgres.attempts import doubtful_attempt
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.provider import Provider, Providers
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.application.hold_check import HoldCheck
from publisher_service.domain.claim import Claimed
from publisher_service.domain.content import message_for
from publisher_service.domain.credentials import ERASED
from publisher_service.domain.outcome import CONTENT_UNREADABLE, Accepted, Ambiguous, NotBegun, Outcome, Rejected, label
from publisher_service.domain.post_job import PostJob, Reason
from publisher_service.wire.contents import content_from
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.clock import Clock
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import SteadyClock
from servicekit.pg.database import Database
from servicekit.record import record
from servicekit.run import telemetry
from servicekit.run.histograms import Histogram
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_CLAIMED = declare("publisher.send.claimed")
_LOOKED = declare("publisher.send.looked")
_ANSWERED = declare("publisher.send.answered")
_MARGIN = 0.1
_ON_HOLD = "the post was put on hold after the claim"
_STOPPED = {Reason.ACCOUNT_NOT_CONNECTED: "the account was disconnected after the claim"}

_log = logging.getLogger(__name__)

_MOST_REPORTED = 10_000
_tracer = trace.get_tracer(__name__)
_meter = metrics.get_meter(__name__)
_unreadable = from_zero(
    _meter.create_counter(
        "postflow.publish.unreadable_credentials",
        description="Times that a post waited because no key opens the credentials",
    )
)
_lateness = Histogram(
    "postflow.publish.lateness",
    scope=__name__,
    unit="s",
    description="Start of the request minus the scheduled time",
    bounds=[0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 60, 600],
)


@record(frozen=True, slots=True, kw_only=True)
class Sent:
    """A claimed job, the outcome of the request, and when that was known."""

    claimed: Claimed
    outcome: Outcome
    time: datetime


class SendPost:
    def __init__(
        self,
        *,
        providers: Providers,
        vault: Vault,
        holds: HoldCheck,
        database: Database,
        clock: Clock,
        steady: SteadyClock,
    ) -> None:
        self._providers = providers
        self._vault = vault
        self._holds = holds
        self._database = database
        self._clock = clock
        self._steady = steady
        self._reported: set[tuple[str, str]] = set()

    async def __call__(self, claimed: Claimed, *, claim_started: float) -> Sent:
        """Sends the post. `claim_started` is the monotonic time before the claim: the lease has not begun earlier."""
        origin = claimed.job.traceparent
        if not telemetry.links([origin]):
            return await self._send(claimed, claim_started)
        with telemetry.linked_trace(_tracer, "publish post", [origin], kind=SpanKind.CLIENT) as span:
            span.set_attribute("postflow.post_job_id", claimed.job.id)
            span.set_attribute("postflow.organization_id", claimed.job.organization_id)
            span.set_attribute("postflow.provider", claimed.provider)
            traced = replace(claimed, job=replace(claimed.job, traceparent=telemetry.traceparent()))
            sent = await self._send(traced, claim_started)
            span.set_attribute("postflow.outcome", label(sent.outcome))
            if not isinstance(sent.outcome, Accepted):
                span.set_status(StatusCode.ERROR, getattr(sent.outcome, "reason", label(sent.outcome)))
            return sent

    async def look_ahead(self, claim_started: float) -> None:
        """Looks at holds for the posts of a claim together, before they wait for their instant or a sender."""
        try:
            await self._holds.look(claim_started)
        except Exception as error:
            if not is_transient(error):
                raise

    async def _send(self, claimed: Claimed, claim_started: float) -> Sent:
        await failpoint(_CLAIMED)
        outcome = await self._request(self._providers[claimed.provider], claimed, claim_started)
        await failpoint(_ANSWERED)
        return Sent(claimed=claimed, outcome=outcome, time=self._steady.now())

    async def _request(self, provider: Provider, claimed: Claimed, claim_started: float) -> Outcome:
        job = claimed.job
        try:
            if not self._holds.rules_out(claim_started):
                reason = await self._holds.reason(claimed, claim_started=claim_started)
                if reason is not None:
                    return NotBegun(reason=reason, message=_STOPPED.get(reason, _ON_HOLD))
        except Exception as error:
            if not is_transient(error):
                raise
            return NotBegun(reason="HOLDS_UNREADABLE", message="nobody knows whether the post was put on hold")
        try:
            credentials = self._vault.open(
                claimed.credentials, organization_id=job.organization_id, account_id=job.target.social_account_id
            )
        except CredentialsUnreadable as error:
            self._report_unreadable(job.organization_id, job.target.social_account_id, error)
            # Our fault, not the account's: the post waits until a process has the key.
            return NotBegun(reason=Reason.CREDENTIALS_UNREADABLE, message=str(error))
        if credentials == ERASED:
            # Read just before the account was connected again.
            return NotBegun(reason=Reason.ACCOUNT_NOT_CONNECTED, message=_STOPPED[Reason.ACCOUNT_NOT_CONNECTED])
        since = await self._first_request(provider, job) if job.in_doubt else None
        if isinstance(since, NotBegun | Ambiguous):
            return since
        try:
            post = post_of(claimed, credentials.access_token, since=since)
        except UnreadableMessage as error:
            return Rejected(reason=CONTENT_UNREADABLE, message=str(error))
        await failpoint(_LOOKED)
        # A process that stood still for a while must not send on a lease that may have ended.
        left = claimed.lease.total_seconds() - (self._clock.monotonic() - claim_started)
        if left < provider.time_limit.total_seconds() + _MARGIN:
            return NotBegun(reason="LEASE_TOO_SHORT", message="too little of the lease was left for a request")
        assert job.schedule_time is not None
        _lateness.record((self._steady.now() - job.schedule_time).total_seconds())
        return await provider.send(post)

    async def _first_request(self, provider: Provider, job: PostJob) -> datetime | NotBegun | Ambiguous | None:
        """Returns when the run's first request that may be out began, or why the post is not sent again now."""
        try:
            async with self._database.statement() as connection:
                first = await doubtful_attempt(connection, job)
        except Exception as error:
            if not is_transient(error):
                raise
            return NotBegun(
                reason="ATTEMPTS_UNREADABLE", message="nobody knows when the first request of the run began"
            )
        since = first.since if first is not None else None
        window = provider.limits.repeat_window
        if window is not None and (since is None or self._steady.now() >= since + window):
            return Ambiguous(reason="TOO_LATE_TO_REPEAT", message="too late to send it again where a repeat is ignored")
        return since

    def _report_unreadable(self, organization_id: str, account_id: str, error: CredentialsUnreadable) -> None:
        """Counts each time, but logs each account once: its posts come back again and again."""
        _unreadable.add(1)
        account = (organization_id, account_id)
        if account not in self._reported and len(self._reported) < _MOST_REPORTED:
            self._reported.add(account)
            _log.error("%s: its posts wait until this process has the key", error)


def post_of(claimed: Claimed, access_token: str, *, since: datetime | None = None) -> Post:
    """Returns the post of a claim; `since` is when the run's first request that may be out began.

    Raises UnreadableMessage.
    """
    job = claimed.job
    message = message_for(content_from(claimed.content), job.target.channel, job.part)
    if message is None:
        raise UnreadableMessage("the content of the draft has no such follow-up")
    return Post(
        external_account_id=claimed.external_account_id,
        access_token=access_token,
        channel=job.target.channel,
        destination=job.target.destination,
        text=message.text,
        idempotency_key=claimed.idempotency_key,
        handle=claimed.handle,
        since=since,
        schedule_time=job.schedule_time,
        title=message.title,
        link=message.link,
        media=message.media,
        follows=job.follows,
        settings=claimed.settings,
        organization_id=job.organization_id,
    )
