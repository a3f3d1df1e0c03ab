"""PublishNow: which posts of a draft are sent at once, and why others are not."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from publisher_service.domain.plan import SavedDraft, local_month
from publisher_service.domain.post_job import OPEN_ATTEMPT, JobState, PostJob, Target, begun_again, is_readable, moved
from publisher_service.domain.retry import latest_time
from servicekit.faults import InvalidField, Refused

_PATIENCE = timedelta(hours=1)

# The verdicts of a claim for which a post is refused. Any other lets it go as soon as the account, or its provider, can
# take it.
REFUSING: Final[Mapping[str, str]] = {
    "ACCOUNT_NOT_CONNECTED": "ACCOUNT_NOT_CONNECTED",
    "CHANNEL_NOT_OFFERED": "CHANNEL_NOT_OFFERED",
    "ACCOUNT_DISABLED": "ACCOUNT_DISABLED",
    "ACCOUNT_ON_HOLD": "ACCOUNT_ON_HOLD",
    "ORGANIZATION_ON_HOLD": "ORGANIZATION_ON_HOLD",
    "PROVIDER_ON_HOLD": "PROVIDER_ON_HOLD",
    "BRAND_ON_HOLD": "BRAND_ON_HOLD",
    "CAMPAIGN_ON_HOLD": "CAMPAIGN_ON_HOLD",
    "DESTINATION_INACTIVE": "DESTINATION_INACTIVE",
    "DAILY_CAP": "CAP_REACHED",
    "SAFE_MODE": "SAFE_MODE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UrgentPosts:
    """Posts to be sent at once: targets of a draft, as the draft is announced."""

    draft: SavedDraft
    targets: tuple[Target, ...]
    over_cap: bool = False
    not_after: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UrgentPost:
    """The lot of one target: it is sent, unless there is a reason not to."""

    job: PostJob
    reason: str = ""


def require_consistent(
    draft: SavedDraft, *, known_version: int, known_revision: int, content_digest: str, post_job_ids: Set[str]
) -> None:
    """Refuses a draft that contradicts what is known of it.

    Without this, what is stored would be sent in place of what the request says, or the other way round: an approval
    and a withdrawal name content by its revision.
    """
    is_same = draft.content_digest == content_digest and post_job_ids == {*draft.post_job_ids}
    if draft.revision == known_revision and not is_same:
        raise InvalidField("draft.revision", f"revision {known_revision} is known with other content or targets")
    if draft.revision > known_revision and draft.version <= known_version:
        raise InvalidField("draft.version", f"version {known_version} is known with revision {known_revision}")


def require_sendable(draft: SavedDraft, *, known_revision: int, approved: bool, withdrawn_below: int) -> None:
    """Refuses content that may not be sent: outdated, withdrawn or not approved, as it is stored by now."""
    metadata = {"draft_id": draft.draft_id}
    if known_revision > draft.revision:
        outdated = "a newer revision of the draft is known"
        raise Refused("REVISION_OUTDATED", outdated, metadata=metadata | {"known_revision": str(known_revision)})
    if draft.revision < withdrawn_below:
        raise Refused("CONTENT_WITHDRAWN", "this revision of the draft is withdrawn", metadata=metadata)
    if not approved:
        raise Refused("NOT_APPROVED", "the draft is not approved", metadata=metadata)


def sent_now(job: PostJob, asked: UrgentPosts, *, now: datetime, time_zone: str = "") -> UrgentPost:
    """Returns the job as it is sent at once, in its next run if its run has ended; or why it is not, and unchanged."""
    if reason := _obstacle(job):
        return UrgentPost(job=job, reason=reason)
    begun = begun_again(job)
    urgent = moved(
        begun,
        JobState.READY,
        now=now,
        until=now,
        called_run=begun.run,
        publish_now=True,
        over_cap=asked.over_cap,
        schedule_time=now,
        not_after=latest_time(asked.not_after, default=_PATIENCE, now=now),
        wanted_revision=asked.draft.revision,
        target_month=local_month(now, time_zone),
    )
    return UrgentPost(job=urgent)


def _obstacle(job: PostJob) -> str:
    if job.state is JobState.PUBLISHED:
        return "ALREADY_PUBLISHED"
    if job.state is JobState.NEEDS_ATTENTION:
        return "NEEDS_ATTENTION"
    # A run in doubt sends what may be out already, and nothing else. A state of a newer release may mean anything.
    if job.in_doubt or job.state in OPEN_ATTEMPT or not is_readable(job):
        return "ATTEMPT_OPEN"
    return ""
