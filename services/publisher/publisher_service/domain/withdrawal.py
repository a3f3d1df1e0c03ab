"""Withdrawals of older revisions, and the post jobs for which they come too late."""

from collections.abc import Sequence
from dataclasses import dataclass

from publisher_service.domain.post_job import OPEN_ATTEMPT, JobState, PostJob, is_readable
from servicekit.faults import Refused

_MAY_BE_OUT = OPEN_ATTEMPT | {JobState.NEEDS_ATTENTION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """Nothing is forbidden if a target is out; otherwise `in_flight` are the jobs that may be out."""

    published: tuple[PostJob, ...] = ()
    in_flight: tuple[str, ...] = ()


def withdrawal_of(jobs: Sequence[PostJob], below: int) -> Withdrawal:
    if published := tuple(job for job in jobs if job.state is JobState.PUBLISHED):
        return Withdrawal(published=published)
    return Withdrawal(in_flight=tuple(sorted(job.id for job in jobs if _may_be_out(job, below))))


def require_known(draft_id: str, *, known: int, below: int) -> None:
    """Refuses to forbid a revision that has not been announced yet: nothing could ever release such a job."""
    if below > known + 1:
        raise Refused(
            "REVISION_NOT_KNOWN",
            "the last revision below the one given has not been announced here yet",
            metadata={"draft_id": draft_id, "known_revision": str(known)},
        )


def _may_be_out(job: PostJob, below: int) -> bool:
    """Returns whether a withdrawn revision of the job may be out.

    A run in doubt resends the same bytes only, so its revision is that of all its attempts. A state that only a newer
    release knows may mean that the post is out.
    """
    return (job.in_doubt or job.state in _MAY_BE_OUT or not is_readable(job)) and job.content_revision < below
