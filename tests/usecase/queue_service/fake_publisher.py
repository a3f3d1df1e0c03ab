"""A fake of Publisher that gives posts back, and holds accounts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from queue_service.domain.hold import Hold, HoldSuperseded
from queue_service.domain.job import TAKEN_BACK, JobState
from queue_service.domain.settlement import JobReport
from queue_service.domain.take_back import CancelAnswer, CancelOutcome, SlotPost
from servicekit.faults import Fault, Unavailable

_STARTED = {JobState.SENDING, JobState.UNKNOWN, JobState.PUBLISHED, JobState.NEEDS_ATTENTION}


@dataclass
class FakePublisher:
    """Gives back all posts but those that `states` says have started or ended, by (draft, channel, destination)."""

    states: dict[tuple[str, str, str], JobState] = field(default_factory=dict)
    versions: dict[tuple[str, str, str], int] = field(default_factory=dict)
    fault: Fault | None = None
    cancel_fault: Fault | None = None
    # The drafts whose posts cannot be answered for.
    refused: set[str] = field(default_factory=set)
    asked: list[list[SlotPost]] = field(default_factory=list)
    holds: dict[str, Hold] = field(default_factory=dict)
    in_flight: tuple[str, ...] = ()
    # The revisions of holds that are under way until their events are set.
    delays: dict[int, asyncio.Event] = field(default_factory=dict)
    # Those that it does not answer for.
    faults: dict[int, Fault] = field(default_factory=dict)

    async def cancel_posts(self, organization_id: str, posts: Sequence[SlotPost]) -> list[CancelAnswer]:
        self.asked.append(list(posts))
        if fault := self.fault or self.cancel_fault:
            raise fault
        if not self.refused.isdisjoint(post.draft_id for post in posts):
            raise Unavailable("UNAVAILABLE", "no")
        return [self._cancel(post) for post in posts]

    async def put_hold(self, hold: Hold) -> tuple[str, ...]:
        if delay := self.delays.get(hold.revision):
            await delay.wait()
        if fault := self.fault or self.faults.get(hold.revision):
            raise fault
        self._keep(hold)
        return self.in_flight

    async def release_hold(self, hold: Hold) -> None:
        if self.fault:
            raise self.fault
        self._keep(hold)

    def _keep(self, hold: Hold) -> None:
        known = self.holds.get(hold.social_account_id)
        if known is not None and known.revision > hold.revision:
            raise HoldSuperseded(known.revision)
        self.holds[hold.social_account_id] = hold

    def _cancel(self, post: SlotPost) -> CancelAnswer:
        key = (post.draft_id, post.channel, post.destination)
        state = self.states.get(key)
        if state in _STARTED:
            return CancelAnswer(post=post, outcome=CancelOutcome.TOO_LATE, job=self.report(post, state))
        if state is not None:
            return CancelAnswer(post=post, outcome=CancelOutcome.ENDED, job=self.report(post, state))
        return CancelAnswer(post=post, outcome=CancelOutcome.CANCELED, job=self.report(post, JobState.CANCELED))

    def report(self, post: SlotPost, state: JobState) -> JobReport:
        key = (post.draft_id, post.channel, post.destination)
        self.versions[key] = self.versions.get(key, 10) + 1
        return JobReport(
            organization_id=post.organization_id,
            slot_id=post.slot_id,
            slot_revision=post.slot_revision,
            draft_id=post.draft_id,
            social_account_id=post.social_account_id,
            channel=post.channel,
            destination=post.destination,
            job_id=f"job-{post.draft_id}-{post.channel}-{post.destination}",
            state=state,
            version=self.versions[key],
            external_url="",
            error_message="",
            state_reason=TAKEN_BACK if state is JobState.CANCELED else "",
            next_action_time=None,
            publish_time=None,
        )
