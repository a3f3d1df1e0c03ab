"""Queue's refusals to give a draft a slot at the time that it asks for."""

from collections.abc import Collection, Iterable
from datetime import datetime

from drafts_service.domain.post_job import IN_FLIGHT, OPEN, JobState, PostJob
from drafts_service.domain.target import Target
from servicekit.record import record

# The draft had a slot on the account, or had been published there, before it was refused another one.
_HAD_A_TIME = frozenset({"ALREADY_QUEUED", "DRAFT_PUBLISHED"})


@record(frozen=True, slots=True, kw_only=True)
class SlotRefusal:
    social_account_id: str
    draft_version: int  # of the announcement that asked for the time
    schedule_time: datetime  # the time that was refused
    reason: str
    message: str
    create_time: datetime


@record(frozen=True, slots=True, kw_only=True)
class RefusedSlot:
    """A refusal as Queue announces it."""

    organization_id: str
    draft_id: str
    refusal: SlotRefusal


def merged(
    known: Iterable[SlotRefusal],
    arrived: Iterable[SlotRefusal],
    *,
    requested_time: datetime | None,
    accounts: Collection[str],
) -> tuple[SlotRefusal, ...]:
    """Returns the newest refusal of each account, by version; drops those of other times and of other accounts."""
    newest: dict[str, SlotRefusal] = {}
    for refusal in (*known, *arrived):
        account = refusal.social_account_id
        if refusal.schedule_time != requested_time or account not in accounts:
            continue
        if account not in newest or newest[account].draft_version < refusal.draft_version:
            newest[account] = refusal
    return tuple(newest[account] for account in sorted(newest))


def standing(refusals: Iterable[SlotRefusal], targets: Iterable[Target], jobs: Iterable[PostJob]) -> list[SlotRefusal]:
    """Returns the refusals of accounts on which the draft has not got a time since.

    This is decided whenever the draft is read, because events of slots and of jobs overtake each other. Which of two
    came first is known from the reason: most are given only to drafts without a slot, so a job with a time is newer.
    """
    accounts = {target.social_account_id for target in targets}
    by_account: dict[str, list[PostJob]] = {}
    for job in (each for each in jobs if not each.part):
        by_account.setdefault(job.target.social_account_id, []).append(job)
    return [
        refusal
        for refusal in refusals
        if refusal.social_account_id in accounts
        and not any(_is_newer(job, refusal) for job in by_account.get(refusal.social_account_id, ()))
    ]


def _is_newer(job: PostJob, refusal: SlotRefusal) -> bool:
    """Returns whether the job got its time after the refusal."""
    if job.state is JobState.PUBLISHED:
        return refusal.reason not in _HAD_A_TIME
    if job.schedule_time is None or job.state not in OPEN | IN_FLIGHT:
        return False
    return refusal.reason not in _HAD_A_TIME or job.schedule_time == refusal.schedule_time
