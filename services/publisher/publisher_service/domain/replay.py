"""Replays: which post jobs are announced again."""

from dataclasses import dataclass
from datetime import datetime

from publisher_service.domain.post_job import JobState, PostJob, is_readable


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Selects post jobs; empty fields admit all."""

    organization_id: str = ""
    draft_id: str = ""
    changed_since: datetime | None = None
    states: tuple[JobState, ...] = ()

    def takes(self, job: PostJob) -> bool:
        """Returns whether the job is announced. A state that only a newer release knows is left to that release."""
        if not is_readable(job) or (self.states and job.state not in self.states):
            return False
        return self.changed_since is None or job.update_time >= self.changed_since
