"""Watching post jobs: what a watcher has been sent, and what it still has to be sent.

A change is stored before it is announced, so a job that is read after it was heard of is as new as what was heard.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from publisher_service.domain.post_job import ENDED_RUN, JobState, PostJob

NOT_ENDED: Final = tuple(state for state in JobState if state not in ENDED_RUN | {JobState.PUBLISHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The post jobs that are watched: those of a draft, of an account, of both, or all of an organization."""

    organization_id: str
    draft_id: str = ""
    social_account_id: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Returns the key under which their changes are heard."""
        if self.draft_id:
            return self.organization_id, "draft", self.draft_id
        if self.social_account_id:
            return self.organization_id, "account", self.social_account_id
        return self.organization_id, "", ""

    def takes(self, job: PostJob) -> bool:
        is_of_draft = self.draft_id in ("", job.draft_id)
        return is_of_draft and self.social_account_id in ("", job.target.social_account_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The place that a watcher has reached.

    The events up to `sequence` have been taken into account. Until `is_caught_up`, the jobs that have not ended are
    being sent, newest first, and `after` is the place of the last one.
    """

    create_time: datetime
    sequence: int
    after: tuple[datetime, str] | None = None
    is_caught_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """A message to a watcher."""

    mark: Mark
    job: PostJob | None = None
    is_caught_up: bool = False


class Pending:
    """The jobs that have changed and have not been sent yet, each once, with the first event about it."""

    def __init__(self) -> None:
        self._firsts: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def add(self, firsts: Mapping[str, int]) -> None:
        for job_id, first in firsts.items():
            self._firsts[job_id] = min(first, self._firsts.get(job_id, first))

    def take(self, most: int) -> list[str]:
        """Takes the jobs that changed first."""
        chosen = sorted(self._firsts, key=self._firsts.__getitem__)[:most]
        for job_id in chosen:
            del self._firsts[job_id]
        return chosen

    def safe(self, position: int) -> int:
        """Returns the sequence up to which nothing is pending, if all events up to the position have been heard."""
        return min((first - 1 for first in self._firsts.values()), default=position)


def changes(jobs: Iterable[PostJob], mark: Mark, *, safe: int) -> list[News]:
    """Returns the messages about changed jobs. Only the last has a newer mark: a break in between repeats all."""
    news = [News(mark=mark, job=job) for job in jobs]
    if news:
        news[-1] = replace(news[-1], mark=advanced(mark, safe))
    return news


def advanced(mark: Mark, sequence: int) -> Mark:
    return replace(mark, sequence=max(mark.sequence, sequence))
