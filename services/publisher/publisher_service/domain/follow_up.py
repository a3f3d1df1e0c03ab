"""Follow-ups: comments below a post, or further parts of a thread. Each goes out once the part before is out.

A follow-up is a post job of its own: PENDING until there is proof of the part before, then due as if a call had begun
it.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from channels import Action
from channels.rules import FollowUpKind, FollowUpRule
from publisher_service.domain.limits import action_of_target
from publisher_service.domain.plan import local_month
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id, moved
from servicekit.record import record

_PATIENCE = timedelta(days=1)


class Unfollowed(StrEnum):
    """The reason why a follow-up cannot go out: what it follows cannot be followed."""

    PARENT_NOT_PUBLISHED = "PARENT_NOT_PUBLISHED"
    # A person has said that it is out, and has not given its identifier.
    PARENT_NOT_NAMED = "PARENT_NOT_NAMED"
    FOLLOW_UPS_NOT_TAKEN = "FOLLOW_UPS_NOT_TAKEN"


_WORDS = {
    Unfollowed.PARENT_NOT_PUBLISHED: "the part before is not published",
    Unfollowed.PARENT_NOT_NAMED: "what it follows was published without an identifier of the provider",
    Unfollowed.FOLLOW_UPS_NOT_TAKEN: "the provider takes no follow-ups on this channel",
}


@record(frozen=True, slots=True, kw_only=True)
class Parent:
    """The post that a follow-up follows, by its name at the provider; without one, why nothing can be followed."""

    name: str = ""
    reason: Unfollowed | None = None

    @property
    def words(self) -> str:
        return _WORDS[self.reason] if self.reason else ""


def parent_of(before: PostJob, rule: FollowUpRule | None) -> Parent:
    """Returns what the next part follows: in a thread the part before, else the post. `rule` is that of the channel."""
    if rule is None:
        return Parent(reason=Unfollowed.FOLLOW_UPS_NOT_TAKEN)
    if before.state is not JobState.PUBLISHED:
        return Parent(reason=Unfollowed.PARENT_NOT_PUBLISHED)
    is_comment = rule.kind is FollowUpKind.COMMENT and before.part > 0
    name = before.follows if is_comment else before.external_id
    return Parent(name=name) if name else Parent(reason=Unfollowed.PARENT_NOT_NAMED)


def is_passed_on(before: PostJob) -> bool:
    """Returns whether the next part has to go out now, or to fail as this one did without being tried."""
    is_refused = before.state is JobState.FAILED and before.error_reason == Unfollowed.FOLLOW_UPS_NOT_TAKEN
    return before.state is JobState.PUBLISHED or (is_refused and before.part > 0)


def next_part(job: PostJob) -> tuple[str, str]:
    """Returns the key of the follow-up behind the job."""
    return job.organization_id, part_id(job, job.part + 1)


def part_id(job: PostJob, part: int) -> str:
    return job_id(job.organization_id, job.draft_id, job.target, part)


def begun(job: PostJob, before: PostJob, parent: Parent, *, now: datetime, time_zone: str = "") -> PostJob:
    """Returns a PENDING follow-up as it is due now, or FAILED if it can follow nothing.

    It may be late by as much as the part before, and by a day at least. `time_zone` is that of the account, if it is
    known.
    """
    if parent.reason is not None:
        return moved(job, JobState.FAILED, now=now, error_reason=parent.reason, error_message=parent.words)
    patience = _PATIENCE
    if before.not_after is not None and before.schedule_time is not None:
        patience = max(before.not_after - before.schedule_time, _PATIENCE)
    return moved(
        job,
        JobState.READY,
        now=now,
        until=now,
        follows=parent.name,
        schedule_time=now,
        not_after=now + patience,
        max_attempts=before.max_attempts,
        wanted_revision=max(job.wanted_revision, before.content_revision),
        traceparent=before.traceparent,
        target_month=local_month(now, time_zone),
        **called(job.target, job.run),
    )


def called(target: Target, run: int) -> dict[str, Any]:
    """Returns the fields of a follow-up in this run: it goes out as if a call had begun it.

    Window, spacing and caps of posts do not count for a comment. What reaches a single person keeps to its limits.
    """
    is_post = action_of_target(target) is Action.POST
    return {"called_run": run, "publish_now": is_post, "over_cap": is_post}


def name_of(part: int, kind: FollowUpKind) -> str:
    """Returns what people call a part: `the post`, `the first comment`, `part 3 of the thread`."""
    if kind is FollowUpKind.THREAD:
        return f"part {part + 1} of the thread"
    if part == 0:
        return "the post"
    return f"the {_ORDINALS[part - 1]} comment" if part <= len(_ORDINALS) else f"comment {part}"


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
