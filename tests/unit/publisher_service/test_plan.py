"""Saved drafts and slots: what each makes of the post jobs of a draft's targets."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.plan import (
    after_save,
    after_slot,
    canceled,
    missing_parts,
    released,
    slots_of_others,
)
from publisher_service.domain.post_job import (
    ENDED_RUN,
    NOT_STARTED,
    JobState,
    PostJob,
    Reason,
    Target,
    job_id,
)
from tests.unit.publisher_service.post_jobs import LATE, LATER, NOW, PAGE, check, draft, jobs, sending, slot, words

targets = st.builds(Target, social_account_id=words, channel=words, destination=st.text(max_size=10))


@given(jobs(), st.booleans(), st.booleans(), st.integers(1, 3))
def test_a_saved_draft_cancels_releases_revives_or_keeps_a_job(
    job: PostJob, has_target: bool, approved: bool, revision: int
) -> None:
    saved = draft(has_target=has_target, approved=approved, revision=revision)
    after = after_save(job, saved, live_slots=frozenset(), now=LATER)
    check(job, after)
    waits_for_approval = job.state is JobState.BLOCKED and job.state_reason in (Reason.NOT_APPROVED, Reason.WITHDRAWN)
    waits_for_content = job.state is JobState.WAITING and job.state_reason is Reason.CONTENT_PENDING
    if not has_target and revision < job.wanted_revision:
        assert after is job, "the draft does not have the target yet"
    elif not has_target:
        canceled_state = JobState.NEEDS_ATTENTION if job.in_doubt else JobState.CANCELED
        assert after.state is (canceled_state if job.state in NOT_STARTED else job.state)
    elif (waits_for_approval and approved and revision >= job.withdrawn_below) or (
        waits_for_content and revision >= job.wanted_revision
    ):
        assert (after.state, after.next_action_time) == (JobState.READY, LATER)
    elif job.state is JobState.CANCELED and job.state_reason is Reason.TARGET_REMOVED:
        assert (after.state, after.run) == (JobState.PENDING, job.run + 1)
    else:
        assert after is job


@pytest.mark.parametrize(
    ("live_slots", "schedule_time", "not_after", "state", "until"),
    [
        ({"slot-1"}, NOW, NOW + timedelta(days=1), JobState.READY, LATER),
        ({"slot-1"}, LATER + timedelta(hours=1), LATER + timedelta(days=1), JobState.READY, LATER + timedelta(hours=1)),
        ({"slot-1"}, NOW, LATER, JobState.PENDING, None),
        ({"slot-1"}, None, None, JobState.PENDING, None),
        ({"slot-2"}, NOW, NOW + timedelta(days=1), JobState.PENDING, None),
    ],
    ids=["due", "not due", "too late", "without a time", "slot is gone"],
)
def test_a_target_added_again_goes_out_while_its_slot_lives(
    live_slots: set[str],
    schedule_time: datetime | None,
    not_after: datetime | None,
    state: JobState,
    until: datetime | None,
) -> None:
    removed = canceled(replace(sending(JobState.SCHEDULED), slot_id="slot-1"), now=NOW)
    removed = replace(removed, schedule_time=schedule_time, not_after=not_after, error_message="of the old run")
    after = after_save(removed, draft(has_target=True, approved=True, revision=2), live_slots=live_slots, now=LATER)
    assert (after.state, after.next_action_time, after.run) == (state, until, removed.run + 1)
    assert (after.attempts, after.error_message) == (0, "")
    assert after.schedule_time == (schedule_time if state is JobState.READY else None)


@pytest.mark.parametrize("state", JobState)
def test_a_slot_lives_while_another_target_goes_out_with_it(state: JobState) -> None:
    other = replace(sending(JobState.SCHEDULED), state=state, slot_id="slot-1")
    over = {JobState.FAILED, JobState.MISSED, JobState.CANCELED, JobState.NEEDS_ATTENTION, JobState.PENDING}
    assert slots_of_others([other]) == (set() if state in over else {"slot-1"})


def test_targets_added_again_one_by_one_revive_no_slot_that_all_left() -> None:
    photos = replace(PAGE, channel="instagram_feed")
    scheduled = replace(sending(JobState.SCHEDULED), target=PAGE, slot_id="slot-1", schedule_time=LATER, not_after=LATE)
    gone = [canceled(replace(scheduled, id=each.channel, target=each), now=NOW) for each in (PAGE, photos)]
    for targets in ((PAGE,), (PAGE, photos)):
        saved = replace(draft(has_target=True, approved=True, revision=2), targets=targets)
        gone = [after_save(job, saved, live_slots=slots_of_others(gone), now=NOW) for job in gone]
    assert [(job.state, job.schedule_time) for job in gone] == [(JobState.PENDING, None)] * 2


@given(
    jobs(),
    st.integers(0, 3),
    st.sampled_from(["slot-0", "slot-1", "slot-2", "slot-3"]),
    st.integers(1, 4),
    st.booleans(),
)
def test_a_job_takes_a_newer_slot_unless_it_is_open_or_published(
    job: PostJob, sequence: int, slot_id: str, revision: int, is_target: bool
) -> None:
    placed = replace(slot(slot_id, revision, sequence=sequence), content_revision=2)
    after = after_slot(job, placed, is_target=is_target, now=LATER)
    check(job, after)
    newer = (sequence, slot_id, revision) > (job.slot_sequence, job.slot_id, job.slot_revision)
    is_over = job.state in ENDED_RUN and (slot_id, revision) == (job.slot_id, job.slot_revision)
    takes = newer and job.state in NOT_STARTED | ENDED_RUN and not is_over
    assert (after is not job) == takes
    if takes:
        ends = JobState.NEEDS_ATTENTION if job.in_doubt else JobState.CANCELED
        assert after.state is (JobState.SCHEDULED if is_target else ends)
        assert (after.slot_id, after.slot_revision) == (slot_id, revision)
        assert after.wanted_revision == max(job.wanted_revision, 2)
        assert (after.schedule_time, after.not_after, after.target_month) == (LATER, LATE, "2026-03-01")
        assert after.attempts == (0 if job.state in ENDED_RUN else job.attempts)
        if after.state is not JobState.NEEDS_ATTENTION:
            assert after.error_message == ("" if job.state in ENDED_RUN else job.error_message)


@given(jobs(JobState.WAITING, JobState.BLOCKED, JobState.READY))
def test_a_released_job_is_due_at_once(job: PostJob) -> None:
    after = released(job, now=LATER)
    check(job, after)
    assert (after.state, after.state_reason, after.next_action_time) == (JobState.READY, Reason.NONE, LATER)


@given(jobs(*NOT_STARTED))
def test_a_canceled_job_has_no_next_action(job: PostJob) -> None:
    check(job, canceled(job, now=LATER))


def test_targets_without_a_job_are_found() -> None:
    other = replace(PAGE, destination="chat")
    saved = replace(draft(has_target=True, approved=True, revision=1), targets=(PAGE, other))
    assert missing_parts(saved, [sending()]) == [(other, 0)]


def test_every_target_has_the_follow_ups_of_its_channel() -> None:
    chat = replace(PAGE, channel="telegram")
    saved = replace(
        draft(has_target=True, approved=True, revision=1), targets=(PAGE, chat), follow_ups={PAGE.channel: 2}
    )
    assert saved.parts == [(PAGE, 0), (PAGE, 1), (PAGE, 2), (chat, 0)]
    assert saved.post_job_ids == [job_id("acme", "draft", target, part) for target, part in saved.parts]
    assert missing_parts(saved, [sending(), replace(sending(), part=2)]) == [(PAGE, 1), (chat, 0)]
    assert [saved.parts_behind(PAGE, part) for part in range(3)] == [2, 1, 0]


@pytest.mark.parametrize("state", sorted(NOT_STARTED))
def test_a_follow_up_that_the_draft_has_lost_is_canceled(state: JobState) -> None:
    lost = replace(sending(state), part=2)
    saved = replace(draft(has_target=True, approved=True, revision=1), follow_ups={PAGE.channel: 1})
    after = after_save(lost, saved, live_slots=frozenset(), now=LATER)
    assert (after.state, after.state_reason) == (JobState.CANCELED, Reason.TARGET_REMOVED)
    kept = replace(lost, part=1)
    assert after_save(kept, saved, live_slots=frozenset(), now=LATER).state is not JobState.CANCELED


def test_a_follow_up_that_the_draft_has_regained_waits_again() -> None:
    lost = replace(canceled(replace(sending(JobState.READY), part=1, slot_id=""), now=NOW), follows="out")
    saved = replace(draft(has_target=True, approved=True, revision=1), follow_ups={PAGE.channel: 1})
    after = after_save(lost, saved, live_slots=frozenset({"", "slot-1"}), now=LATER)
    check(lost, after)
    assert (after.state, after.follows, after.schedule_time) == (JobState.PENDING, "", None)


def test_a_post_knows_how_many_follow_ups_come_after_it() -> None:
    saved = replace(draft(has_target=True, approved=True, revision=1), follow_ups={PAGE.channel: 3})
    waiting = replace(sending(JobState.SCHEDULED), part=1, parts=0)
    after = after_save(waiting, saved, live_slots=frozenset(), now=LATER)
    assert (after.parts, after.version) == (2, waiting.version + 1)
    assert after_save(after, saved, live_slots=frozenset(), now=LATER) is after
