"""A post job: the publication of one target of one draft, and the states it may take."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from publisher_service.domain.derived_ids import derived_id
from servicekit.record import record


class JobState(StrEnum):
    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    READY = "READY"
    SENDING = "SENDING"
    WAITING = "WAITING"
    BLOCKED = "BLOCKED"
    UNKNOWN = "UNKNOWN"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"
    MISSED = "MISSED"
    CANCELED = "CANCELED"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"


class Reason(StrEnum):
    """The reason why a job waits, is blocked or was canceled, or why an UNKNOWN one is not sent again."""

    NONE = ""
    # Due, behind other posts of its account.
    IN_LINE = "IN_LINE"
    CONTENT_PENDING = "CONTENT_PENDING"
    RATE_LIMITED = "RATE_LIMITED"
    RETRY = "RETRY"
    # The provider prepares it.
    MEDIA = "MEDIA"
    NOT_APPROVED = "NOT_APPROVED"
    WITHDRAWN = "WITHDRAWN"
    ACCOUNT_NOT_CONNECTED = "ACCOUNT_NOT_CONNECTED"
    ORGANIZATION_ON_HOLD = "ORGANIZATION_ON_HOLD"
    PROVIDER_ON_HOLD = "PROVIDER_ON_HOLD"
    ACCOUNT_ON_HOLD = "ACCOUNT_ON_HOLD"
    # Schedule has switched the account off.
    ACCOUNT_DISABLED = "ACCOUNT_DISABLED"
    # The limits of the account: its send window, its daily cap of an action, and the time between two sends.
    SEND_WINDOW = "SEND_WINDOW"
    DAILY_CAP = "DAILY_CAP"
    SPACING = "SPACING"
    # The provider takes nothing more on this channel of the account for a while.
    PROVIDER_QUOTA = "PROVIDER_QUOTA"
    BRAND_ON_HOLD = "BRAND_ON_HOLD"
    CAMPAIGN_ON_HOLD = "CAMPAIGN_ON_HOLD"
    # The post stands in no line, so that others of its account pass.
    DESTINATION_INACTIVE = "DESTINATION_INACTIVE"
    # Likewise, because the account does not offer the channel.
    CHANNEL_NOT_OFFERED = "CHANNEL_NOT_OFFERED"
    # The draft has lost the target; if it regains it, the job is revived.
    TARGET_REMOVED = "TARGET_REMOVED"
    # Queue has taken the slot back; only a later revision or a newer slot revives the job.
    TAKEN_BACK = "TAKEN_BACK"
    # None of this process's keys opens the stored credentials.
    CREDENTIALS_UNREADABLE = "CREDENTIALS_UNREADABLE"
    # Earlier releases only: they claimed posts of a provider that they did not have.
    PROVIDER_UNKNOWN = "PROVIDER_UNKNOWN"
    # An earlier attempt may have gone out, and the provider refused a resend.
    RESEND_REFUSED = "RESEND_REFUSED"
    # An earlier attempt may have gone out, and no attempt is left.
    ATTEMPTS_EXHAUSTED = "ATTEMPTS_EXHAUSTED"
    # An earlier attempt may have gone out, and its bytes are lost: no other bytes go out under its key.
    CONTENT_LOST = "CONTENT_LOST"


# A hold covers the post.
HOLDS = frozenset(reason for reason in Reason if reason.endswith("_ON_HOLD"))
# The last look before a request keeps a claimed post back for one of these.
STOPPED = HOLDS | {Reason.ACCOUNT_NOT_CONNECTED}

_STATES: Mapping[str, "JobState"] = {state.value: state for state in JobState}
_REASONS: Mapping[str, "Reason"] = {reason.value: reason for reason in Reason}


class EventKind(StrEnum):
    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    UNSCHEDULED = "UNSCHEDULED"
    STARTED = "STARTED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DEFERRED = "DEFERRED"
    BLOCKED = "BLOCKED"
    UNCERTAIN = "UNCERTAIN"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"
    MISSED = "MISSED"
    CANCELED = "CANCELED"
    ACCEPTED = "ACCEPTED"


WITH_NEXT_ACTION = frozenset({JobState.READY, JobState.WAITING, JobState.BLOCKED, JobState.SENDING, JobState.UNKNOWN})
ENDED_RUN = frozenset({JobState.FAILED, JobState.MISSED, JobState.CANCELED})
OPEN_ATTEMPT = frozenset({JobState.SENDING, JobState.UNKNOWN})
NOT_STARTED = frozenset({JobState.PENDING, JobState.SCHEDULED, JobState.READY, JobState.WAITING, JobState.BLOCKED})

# Waits that end with the next action. One for a limit ends earlier: its next action is at the latest time of the post.
TIMED = frozenset({Reason.RETRY, Reason.RATE_LIMITED, Reason.CREDENTIALS_UNREADABLE})

# A transition may lead back to the same state: a wait is released, a time changes, a look is repeated.
_BEFORE_THE_SEND = frozenset(
    {
        JobState.SCHEDULED,
        JobState.READY,
        JobState.SENDING,
        JobState.WAITING,
        JobState.BLOCKED,
        JobState.MISSED,
        JobState.CANCELED,
        # The provider refuses to prepare it.
        JobState.FAILED,
    }
)
# A job that may have gone out and waits for a resend never ends as unsent; see `domain.doubt`.
_IN_DOUBT = frozenset({JobState.UNKNOWN, JobState.NEEDS_ATTENTION, JobState.FAILED})
# The next run begins with a new slot, its command, a target that the draft has regained, or a call. It begins without a
# time if the slot is canceled before it is known here.
_NEXT_RUN = _BEFORE_THE_SEND | {JobState.PENDING}
# Proof that a post is out counts in any state, no matter how late it comes or who brings it.
TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    state: after | {JobState.PUBLISHED}
    for state, after in {
        JobState.PENDING: _BEFORE_THE_SEND,
        # Its slot may be canceled.
        JobState.SCHEDULED: _BEFORE_THE_SEND | _IN_DOUBT | {JobState.PENDING},
        JobState.READY: _BEFORE_THE_SEND | _IN_DOUBT,
        JobState.WAITING: _BEFORE_THE_SEND | _IN_DOUBT,
        JobState.BLOCKED: _BEFORE_THE_SEND | _IN_DOUBT,
        JobState.SENDING: frozenset({JobState.FAILED, JobState.WAITING, JobState.BLOCKED, JobState.UNKNOWN}),
        # Only proof of absence leads back to a send. FAILED is what a person says.
        JobState.UNKNOWN: frozenset({JobState.WAITING, JobState.NEEDS_ATTENTION, JobState.FAILED}),
        JobState.NEEDS_ATTENTION: frozenset({JobState.FAILED}),
        JobState.FAILED: _NEXT_RUN,
        JobState.MISSED: _NEXT_RUN,
        JobState.CANCELED: _NEXT_RUN,
    }.items()
} | {JobState.PUBLISHED: frozenset()}

# Proof counts even in a state that only a newer release knows.
_AFTER_UNREADABLE = frozenset({JobState.PUBLISHED})

_KINDS: Mapping[str, EventKind] = {
    JobState.PENDING: EventKind.CREATED,
    JobState.SCHEDULED: EventKind.SCHEDULED,
    JobState.READY: EventKind.ACCEPTED,
    JobState.SENDING: EventKind.STARTED,
    JobState.WAITING: EventKind.DEFERRED,
    JobState.BLOCKED: EventKind.BLOCKED,
    JobState.UNKNOWN: EventKind.UNCERTAIN,
    JobState.PUBLISHED: EventKind.SUCCEEDED,
    JobState.FAILED: EventKind.FAILED,
    JobState.MISSED: EventKind.MISSED,
    JobState.CANCELED: EventKind.CANCELED,
    JobState.NEEDS_ATTENTION: EventKind.NEEDS_ATTENTION,
}


@record(frozen=True, slots=True, kw_only=True)
class Target:
    social_account_id: str
    channel: str
    destination: str = ""


@record(frozen=True, slots=True, kw_only=True)
class PostJob:
    organization_id: str
    id: str
    draft_id: str
    target: Target
    # A `JobState` and a `Reason`, or plain text that only a newer release knows.
    state: str
    state_reason: str = Reason.NONE
    version: int = 1
    run: int = 1
    slot_sequence: int = 0
    slot_id: str = ""
    slot_revision: int = 0
    schedule_time: datetime | None = None
    not_after: datetime | None = None
    next_action_time: datetime | None = None
    # The limit on which it is parked, out of its account's line, and when a limit may let it go.
    parked_on: str = ""
    expected_time: datetime | None = None
    max_attempts: int = 5
    attempts: int = 0
    fence: int = 0
    # An attempt of this run may have reached the provider, and nothing has proven its outcome.
    in_doubt: bool = False
    # While UNKNOWN: a person is asked after this instant.
    unknown_until: datetime | None = None
    content_revision: int = 0
    wanted_revision: int = 0
    withdrawn_below: int = 0
    # Those of the draft; empty if it has none.
    brand_id: str = ""
    campaign_id: str = ""
    publish_time: datetime | None = None
    external_id: str = ""
    external_url: str = ""
    evidence_kind: str = ""
    error_reason: str = ""
    error_message: str = ""
    last_attempt_time: datetime | None = None
    target_month: str = ""
    traceparent: str = ""
    create_time: datetime
    update_time: datetime
    # The run that a call began, RetryPostJob or PublishNow; 0 if none did. Slots begin all others.
    called_run: int = 0
    # How PublishNow sends that run; without meaning for any other.
    publish_now: bool = False
    over_cap: bool = False
    # 0 for the post itself, n for its n-th follow-up on the target; how many come after it; and the provider's name of
    # what a follow-up follows, empty until that is out.
    part: int = 0
    parts: int = 0
    follows: str = ""

    @property
    def is_called(self) -> bool:
        """Returns whether a call began this run: it goes its own way, and slots that come meanwhile are only noted."""
        return self.called_run == self.run

    @property
    def is_sent_now(self) -> bool:
        return self.is_called and self.publish_now

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.id

    @property
    def account_key(self) -> tuple[str, str]:
        return self.organization_id, self.target.social_account_id


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Selects jobs of an organization; empty fields admit all."""

    organization_id: str
    draft_id: str = ""
    social_account_id: str = ""
    states: tuple[JobState, ...] = ()


def job_id(organization_id: str, draft_id: str, target: Target, part: int = 0) -> str:
    """Returns a UUIDv8 of organization, draft, target and part, so that any service can compute the id."""
    names = [organization_id, draft_id, target.social_account_id, target.channel, target.destination]
    if part:
        names.append(str(part))
    return derived_id(*names)


def moved(
    job: PostJob,
    state: JobState,
    *,
    now: datetime,
    reason: str = Reason.NONE,
    until: datetime | None = None,
    unknown_until: datetime | None = None,
    parked_on: str = "",
    expected_time: datetime | None = None,
    **changes: Any,
) -> PostJob:
    """Returns the job in its next state and version. Every change of state passes here, except the claim's own.

    A wait ends at the job's latest time, when it is missed. Pass all other changes too: a copy of a job costs as much
    as a small query.
    """
    if state is JobState.WAITING and until is not None and job.not_after is not None:
        until = min(until, job.not_after)
    assert state in _after(job.state), f"a post job goes from {job.state} to {state}"
    assert (until is not None) == (state in WITH_NEXT_ACTION), f"{state} and its next action"
    return replace(
        job,
        version=job.version + 1,
        state=state,
        state_reason=reason,
        next_action_time=until,
        unknown_until=unknown_until,
        parked_on=parked_on,
        expected_time=expected_time,
        update_time=now,
        **changes,
    )


def renewed(job: PostJob, *, now: datetime, **changes: Any) -> PostJob:
    """Returns the job with these changes, in its state but in its next version, so that they are announced."""
    return replace(job, version=job.version + 1, update_time=now, **changes)


def _after(state: str) -> frozenset[JobState]:
    known = _STATES.get(state)
    return _AFTER_UNREADABLE if known is None else TRANSITIONS[known]


def kind_of(state: str) -> EventKind:
    """Returns the kind of event that announces a job in this state."""
    return _KINDS[state]


def expected_time(job: PostJob) -> datetime | None:
    """Returns the earliest time at which a job that waits, or stands in line, may go out, as far as that is known."""
    if job.state is JobState.READY:
        return job.expected_time
    if job.state is not JobState.WAITING:
        return None
    return job.next_action_time if job.state_reason in TIMED else job.expected_time


def state_from(text: str) -> str:
    """Returns the state that a row names; plain text if only a newer release knows it."""
    return _STATES.get(text, text)


def reason_from(text: str) -> str:
    """Returns the reason that a row names; plain text if only a newer release knows it."""
    return _REASONS.get(text, text)


def is_readable(job: PostJob) -> bool:
    """Returns whether this release knows the job's state. It shows any other job and leaves it to newer releases."""
    return job.state in _STATES


def begun_again(job: PostJob) -> PostJob:
    """Returns the job in its next run if its run has ended: nothing of the old run shows on the new one.

    The claim's statement does the same in SQL.
    """
    if job.state not in ENDED_RUN:
        return job
    return replace(job, run=job.run + 1, attempts=0, error_reason="", error_message="")


def newer_slot(job: PostJob, sequence: int, slot_id: str, slot_revision: int) -> bool:
    """Returns whether the slot is newer than the job's: Queue's database numbers the slots of a draft.

    Slots of older releases have no number; of those the greater id is newer.
    """
    return (sequence, slot_id, slot_revision) > (job.slot_sequence, job.slot_id, job.slot_revision)
