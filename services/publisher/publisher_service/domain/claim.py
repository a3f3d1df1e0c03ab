"""Commands, and the verdicts that a claim gives on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from publisher_service.domain.post_job import PostJob, Target, job_id
from servicekit.record import record


@record(frozen=True, slots=True, kw_only=True)
class Command:
    """Asks to send one target of one draft now.

    It comes from the stream, from the line of the account, or from the job itself when the stream has lost it.
    """

    organization_id: str
    draft_id: str
    target: Target
    slot_id: str
    slot_revision: int
    # 0 if the command comes from the job itself: nobody waits for an answer.
    emission: int
    schedule_time: datetime
    not_after: datetime
    content_revision: int
    max_attempts: int
    traceparent: str
    slot_sequence: int = 0
    # Empty if the sender did not know the time zone: the job keeps its month.
    target_month: str = ""
    # The newest version of the job that the sender knows.
    known_job_version: int = 0
    # Of a follow-up, which only its job commands.
    part: int = 0
    # Computed once: it is a digest, and needed several times.
    post_job_id: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "post_job_id", job_id(self.organization_id, self.draft_id, self.target, self.part))

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.post_job_id


NO_SETTINGS: Mapping[str, str] = {}


class Verdict(StrEnum):
    CLAIMED = "CLAIMED"
    # The database is older than a mark that the process knows.
    OLDER = "OLDER"
    SAFE_MODE = "SAFE_MODE"
    # The command knows a newer version of its job: the database is older than that.
    COMMAND_AHEAD = "COMMAND_AHEAD"
    # Only a newer release knows the state of the job: left to that release.
    UNREADABLE = "UNREADABLE"
    # The job has a newer slot.
    STALE = "STALE"
    # The run has ended.
    ENDED = "ENDED"
    # It is a follow-up, and the part before is not out.
    PARENT_PENDING = "PARENT_PENDING"
    # Another attempt is open.
    OPEN = "OPEN"
    # The job waits for a time that has not come.
    EARLY = "EARLY"
    MISSED = "MISSED"
    CONTENT_PENDING = "CONTENT_PENDING"
    WITHDRAWN = "WITHDRAWN"
    # No attempt is left.
    EXHAUSTED = "EXHAUSTED"
    # An attempt may have gone out, and its bytes are lost.
    CONTENT_LOST = "CONTENT_LOST"
    # The draft has lost this target.
    REMOVED = "REMOVED"
    NOT_APPROVED = "NOT_APPROVED"
    ACCOUNT_NOT_CONNECTED = "ACCOUNT_NOT_CONNECTED"
    # The account does not offer the channel.
    CHANNEL_NOT_OFFERED = "CHANNEL_NOT_OFFERED"
    # A hold covers the organization, its accounts at the provider, the account, the brand, or the campaign.
    ORGANIZATION_ON_HOLD = "ORGANIZATION_ON_HOLD"
    PROVIDER_ON_HOLD = "PROVIDER_ON_HOLD"
    ACCOUNT_ON_HOLD = "ACCOUNT_ON_HOLD"
    BRAND_ON_HOLD = "BRAND_ON_HOLD"
    CAMPAIGN_ON_HOLD = "CAMPAIGN_ON_HOLD"
    # Schedule has switched the account off.
    ACCOUNT_DISABLED = "ACCOUNT_DISABLED"
    DESTINATION_INACTIVE = "DESTINATION_INACTIVE"
    # The provider has not prepared the post yet.
    MEDIA = "MEDIA"
    # The provider refuses to prepare the post.
    MEDIA_REFUSED = "MEDIA_REFUSED"
    # The instants of the account's window or day are over: they are computed, and the claim looks again.
    LIMITS_STALE = "LIMITS_STALE"
    # The send window of the account is closed.
    SEND_WINDOW = "SEND_WINDOW"
    # The daily cap of the action is used up.
    DAILY_CAP = "DAILY_CAP"
    # The provider takes nothing more on this channel of the account for a while.
    PROVIDER_QUOTA = "PROVIDER_QUOTA"
    # The account has sent something too short a while ago.
    SPACING = "SPACING"
    # Another job of the account is being sent, or has to go first.
    ACCOUNT_BUSY = "ACCOUNT_BUSY"
    # This process has no room for another job of the provider, or does not know the provider.
    PROVIDER_BUSY = "PROVIDER_BUSY"


UNSAFE = frozenset({Verdict.OLDER, Verdict.SAFE_MODE, Verdict.COMMAND_AHEAD})
"""Verdicts on a whole batch: nothing is claimed, and no job and no gate changes."""

IN_LINE = frozenset({Verdict.ACCOUNT_BUSY, Verdict.PROVIDER_BUSY})
"""Verdicts that leave the job in the line of its account, to be claimed when its turn comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The room of one provider: how many posts it may get now, and the lease of each."""

    provider: str
    room: int
    lease: timedelta
    # Its posts are prepared before they are sent.
    prepares: bool = False
    # Organizations that get nothing now: their own requests hold up what they have here.
    crowded: tuple[str, ...] = ()


@record(frozen=True, slots=True, kw_only=True)
class Claimed:
    """An open attempt: it is recorded, and everything that the send needs is here."""

    job: PostJob
    provider: str
    external_account_id: str
    credentials: bytes
    # What the account was connected with besides its secrets.
    settings: Mapping[str, str] = field(default_factory=lambda: NO_SETTINGS)
    content: bytes
    content_digest: str
    idempotency_key: str
    # From the claim on: no request may begin that could outlive it.
    lease: timedelta
    # A daily cap or a spacing counts it, so that its outcome is noted there.
    is_limited: bool = False
    # What the provider has prepared; empty if it prepares nothing.
    handle: str = ""
    # Requests of the account in a row that found no provider.
    failures: int = 0


@record(frozen=True, slots=True, kw_only=True)
class Judged:
    verdict: Verdict
    organization_id: str
    id: str
    version: int
    next_action_time: datetime | None
    # This claim has put the job in line; it was not there before.
    is_lined: bool = False
    claimed: Claimed | None = None
    # How far the process has come with this claim; 0 if it has claimed nothing.
    mark: int = 0
    # The claim takes one of the daily cap.
    reserves: bool = False
    # When the limit that keeps it back may let it go.
    limit_time: datetime | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.id


def send_time(command: Command, now: datetime) -> datetime:
    """Returns when a post that is claimed now is sent: the claim runs ahead of its time by a moment."""
    return max(now, command.schedule_time)


def command_of(job: PostJob) -> Command:
    """Returns the command of a job that has its times, as the job itself repeats it."""
    assert job.schedule_time is not None
    assert job.not_after is not None
    return Command(
        organization_id=job.organization_id,
        draft_id=job.draft_id,
        target=job.target,
        slot_sequence=job.slot_sequence,
        slot_id=job.slot_id,
        slot_revision=job.slot_revision,
        emission=0,
        schedule_time=job.schedule_time,
        not_after=job.not_after,
        content_revision=job.wanted_revision,
        max_attempts=job.max_attempts,
        target_month=job.target_month,
        traceparent=job.traceparent,
        part=job.part,
    )
