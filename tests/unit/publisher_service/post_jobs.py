"""Post jobs, drafts, slots and commands for tests of the domain, and the rules that every move of a job keeps."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from publisher_service.domain.claim import Command
from publisher_service.domain.plan import (
    SavedDraft,
    Slot,
)
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import (
    ENDED_RUN,
    NOT_STARTED,
    OPEN_ATTEMPT,
    TRANSITIONS,
    WITH_NEXT_ACTION,
    JobState,
    PostJob,
    Reason,
    Target,
)

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
LATE = LATER + timedelta(hours=24)
POLICY = Policy()
PAGE = Target(social_account_id="page", channel="facebook")

words = st.text(min_size=1, max_size=10)


_REASONS: dict[JobState, list[Reason]] = {state: [Reason.NONE] for state in JobState} | {
    JobState.READY: [Reason.NONE, Reason.IN_LINE],
    JobState.WAITING: [Reason.CONTENT_PENDING, Reason.RATE_LIMITED, Reason.RETRY],
    JobState.BLOCKED: [
        Reason.NOT_APPROVED,
        Reason.WITHDRAWN,
        Reason.ACCOUNT_NOT_CONNECTED,
        Reason.ACCOUNT_ON_HOLD,
    ],
    JobState.CANCELED: [Reason.NONE, Reason.TARGET_REMOVED, Reason.TAKEN_BACK],
}
_MAY_BE_IN_DOUBT = (NOT_STARTED | OPEN_ATTEMPT | {JobState.NEEDS_ATTENTION}) - {JobState.PENDING}


@st.composite
def jobs(draw: st.DrawFn, *states: JobState) -> PostJob:
    """Draws a sound job in one of the states; in any state when none is given."""
    state = draw(st.sampled_from(states or tuple(JobState)))
    most = draw(st.integers(1, 5))
    return PostJob(
        organization_id="acme",
        id="job",
        draft_id="draft",
        target=PAGE,
        state=state,
        state_reason=draw(st.sampled_from(_REASONS[state])),
        version=draw(st.integers(1, 9)),
        run=draw(st.integers(1, 3)),
        slot_sequence=draw(st.integers(0, 2)),
        slot_id=draw(st.sampled_from(["", "slot-1", "slot-2"])),
        slot_revision=draw(st.integers(1, 3)),
        schedule_time=NOW,
        not_after=LATER,
        next_action_time=NOW if state in WITH_NEXT_ACTION else None,
        max_attempts=most,
        attempts=draw(st.integers(1, most)),
        fence=draw(st.integers(1, 9)),
        in_doubt=state is JobState.UNKNOWN or (state in _MAY_BE_IN_DOUBT and draw(st.booleans())),
        publish_time=NOW if state is JobState.PUBLISHED else None,
        external_id="out" if state is JobState.PUBLISHED else "",
        evidence_kind="PROVIDER_ID" if state is JobState.PUBLISHED else "",
        error_reason="" if state in (JobState.PUBLISHED, JobState.PENDING) else "EARLIER",
        withdrawn_below=draw(st.integers(0, 3)),
        wanted_revision=draw(st.integers(0, 3)),
        create_time=NOW,
        update_time=NOW,
    )


def check(before: PostJob, after: PostJob) -> None:
    """Asserts what a move must keep; the tables have the same rules as CHECKs."""
    if after is before:
        return
    assert (after.next_action_time is not None) == (after.state in WITH_NEXT_ACTION)
    if after.state in (JobState.WAITING, JobState.BLOCKED) and after.next_action_time and after.not_after:
        assert after.next_action_time <= after.not_after, "it is missed then"
    assert (after.evidence_kind != "" and after.publish_time is not None) == (after.state is JobState.PUBLISHED)
    assert after.state is not JobState.FAILED or after.error_reason
    assert after.state in TRANSITIONS[JobState(before.state)]
    assert after.version == before.version + 1
    assert (after.id, after.target, after.create_time) == (before.id, before.target, before.create_time)
    assert after.withdrawn_below == before.withdrawn_below
    assert not (after.in_doubt and after.state in ENDED_RUN | {JobState.PUBLISHED})
    assert not before.in_doubt or after.in_doubt or after.state is JobState.PUBLISHED, "only proof ends a doubt"
    assert after.fence == before.fence
    assert after.run == before.run + (before.state in ENDED_RUN and after.state is not JobState.PUBLISHED)


def sending(state: JobState = JobState.SENDING) -> PostJob:
    return PostJob(
        organization_id="acme",
        id="job",
        draft_id="draft",
        target=PAGE,
        state=state,
        slot_id="slot-1",
        slot_revision=1,
        schedule_time=NOW,
        not_after=LATER,
        next_action_time=LATER if state in WITH_NEXT_ACTION else None,
        attempts=1,
        fence=1,
        create_time=NOW,
        update_time=NOW,
    )


def draft(*, has_target: bool, approved: bool, revision: int) -> SavedDraft:
    return SavedDraft(
        organization_id="acme",
        draft_id="draft",
        version=revision,
        revision=revision,
        content=b"",
        content_digest="",
        approved=approved,
        targets=(PAGE,) if has_target else (),
    )


def slot(slot_id: str, revision: int, *, sequence: int = 0) -> Slot:
    return Slot(
        organization_id="acme",
        slot_id=slot_id,
        sequence=sequence,
        revision=revision,
        draft_id="draft",
        targets=(PAGE,),
        schedule_time=LATER,
        not_after=LATE,
        target_month="2026-03-01",
        traceparent="",
    )


def command(slot_id: str) -> Command:
    return Command(
        organization_id="acme",
        draft_id="draft",
        target=PAGE,
        slot_id=slot_id,
        slot_revision=1,
        emission=1,
        schedule_time=NOW,
        not_after=LATER,
        content_revision=1,
        max_attempts=7,
        traceparent="",
    )
