"""Settling a slot by the reports of its post jobs."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.command import ANSWERED_DELAY, still_wanted
from queue_service.domain.job import ENDED, UNDER_WAY, JobState
from queue_service.domain.settlement import JobReport, SlotProgress, TargetProgress, outcome, settle
from queue_service.domain.slot import LIVE, SlotState, TakingBack

NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
NOW = NINE + timedelta(seconds=2)
FEED, STORY = ("facebook", ""), ("instagram_story", "")


def slot(*targets: tuple[str, str], state: SlotState = SlotState.DISPATCHED) -> SlotProgress:
    return SlotProgress(
        organization_id="acme",
        slot_id="s1",
        draft_id="d1",
        social_account_id="page",
        revision=1,
        schedule_time=NINE,
        state=state,
        next_emit_at=NINE + timedelta(seconds=4) if state in LIVE else None,
        expected_time=None,
        publish_time=None,
        is_answered=False,
        state_reason="",
        taking_back=TakingBack.NO,
        targets=tuple(TargetProgress(channel, place, None, 0, None, None) for channel, place in targets or (FEED,)),
    )


def report(
    state: JobState,
    version: int,
    target: tuple[str, str] = FEED,
    *,
    slot_id: str = "s1",
    revision: int = 1,
    next_action_time: datetime | None = None,
    publish_time: datetime | None = None,
    publish_now: bool | None = False,
) -> JobReport:
    return JobReport(
        organization_id="acme",
        slot_id=slot_id,
        slot_revision=revision,
        draft_id="d1",
        social_account_id="page",
        channel=target[0],
        destination=target[1],
        job_id=f"job-{target[0]}",
        state=state,
        version=version,
        external_url="https://example.org/1" if state is JobState.PUBLISHED else "",
        error_message="no" if state is JobState.FAILED else "",
        state_reason="",
        next_action_time=next_action_time,
        publish_time=publish_time,
        publish_now=publish_now,
    )


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        ("PUBLISHED", "PUBLISHED"),
        ("PUBLISHED PUBLISHED", "PUBLISHED"),
        ("PUBLISHED FAILED", "PARTIALLY_PUBLISHED"),
        ("PUBLISHED CANCELED", "PARTIALLY_PUBLISHED"),
        ("PUBLISHED NEEDS_ATTENTION", "NEEDS_ATTENTION"),
        ("FAILED NEEDS_ATTENTION", "NEEDS_ATTENTION"),
        ("FAILED", "FAILED"),
        ("FAILED MISSED", "FAILED"),
        ("MISSED CANCELED", "FAILED"),
        ("MISSED MISSED", "MISSED"),
        ("CANCELED CANCELED", "CANCELED"),
    ],
)
def test_the_outcome_of_a_slot_whose_targets_have_ended(ends: str, state: str) -> None:
    assert outcome(map(JobState, ends.split())) is SlotState(state)


def test_a_slot_stays_handed_over_until_its_last_target_has_ended() -> None:
    once = settle(slot(FEED, STORY), [report(JobState.PUBLISHED, 3, publish_time=NOW)], now=NOW)
    assert once.state is SlotState.DISPATCHED
    twice = settle(once, [report(JobState.FAILED, 4, STORY)], now=NOW)
    assert twice.state is SlotState.PARTIALLY_PUBLISHED
    assert twice.next_emit_at is None
    assert twice.publish_time == NOW
    assert [target.report and target.report.error_message for target in twice.targets] == ["", "no"]


def test_a_post_sent_early_ends_a_slot_that_was_not_handed_over() -> None:
    early = settle(slot(state=SlotState.SCHEDULED), [report(JobState.PUBLISHED, 2, publish_time=NOW)], now=NOW)
    assert early.state is SlotState.PUBLISHED


@pytest.mark.parametrize("state", sorted(set(JobState) - ENDED - {JobState.PENDING, JobState.SCHEDULED}))
def test_an_answer_puts_the_next_repeat_off(state: JobState) -> None:
    answered = settle(slot(), [report(state, 2)], now=NOW)
    assert answered.state is SlotState.DISPATCHED
    assert answered.next_emit_at == NOW + ANSWERED_DELAY


def test_the_same_answer_again_puts_it_off_again() -> None:
    answered = settle(slot(), [report(JobState.BLOCKED, 2)], now=NOW)
    later = NOW + timedelta(minutes=5)
    assert settle(answered, [report(JobState.BLOCKED, 2)], now=later).next_emit_at == later + ANSWERED_DELAY


def test_a_scheduled_job_is_no_answer() -> None:
    settled = settle(slot(), [report(JobState.SCHEDULED, 1)], now=NOW)
    assert settled.next_emit_at == slot().next_emit_at
    assert settled.targets[0].report == report(JobState.SCHEDULED, 1)


def test_a_report_before_the_dispatch_keeps_the_instant_of_the_repeat() -> None:
    scheduled = slot(state=SlotState.SCHEDULED)
    for state in (JobState.SCHEDULED, JobState.BLOCKED):
        assert settle(scheduled, [report(state, 1)], now=NOW).next_emit_at == scheduled.next_emit_at


def test_one_answer_of_two_does_not_put_the_repeat_off() -> None:
    half = settle(slot(FEED, STORY), [report(JobState.READY, 2)], now=NOW)
    assert half.next_emit_at == slot().next_emit_at
    assert [target.channel for target in still_wanted(half.targets)] == ["instagram_story"]


def test_once_all_have_answered_only_unended_targets_are_wanted() -> None:
    both = settle(slot(FEED, STORY), [report(JobState.WAITING, 2), report(JobState.PUBLISHED, 3, STORY)], now=NOW)
    assert [target.channel for target in still_wanted(both.targets)] == ["facebook"]


def test_an_answer_to_another_revision_or_slot_is_ignored() -> None:
    assert settle(slot(), [report(JobState.FAILED, 2, revision=2)], now=NOW) == slot()
    assert settle(slot(), [report(JobState.READY, 2, slot_id="s0")], now=NOW) == slot()


@pytest.mark.parametrize("final", [JobState.PUBLISHED, JobState.NEEDS_ATTENTION])
def test_a_final_report_counts_for_any_revision(final: JobState) -> None:
    assert settle(slot(), [report(final, 2, revision=7)], now=NOW).state is SlotState(final)


@pytest.mark.parametrize(
    ("final", "reason"), [(JobState.PUBLISHED, "DRAFT_PUBLISHED"), (JobState.NEEDS_ATTENTION, "NEEDS_ATTENTION")]
)
def test_a_slot_whose_targets_another_has_sent_is_canceled_and_says_why(final: JobState, reason: str) -> None:
    ended = settle(slot(), [report(final, 2, slot_id="s0", publish_time=NOW)], now=NOW)
    assert (ended.state, ended.state_reason) == (SlotState.CANCELED, reason)
    assert (ended.publish_time, ended.next_emit_at) == (None, None)


@pytest.mark.parametrize("own", [JobState.PUBLISHED, JobState.FAILED, JobState.MISSED, JobState.CANCELED])
def test_only_its_own_posts_decide_the_outcome_of_a_slot(own: JobState) -> None:
    earlier = report(JobState.PUBLISHED, 5, slot_id="s0", publish_time=NINE - timedelta(days=1))
    ended = settle(slot(FEED, STORY), [earlier, report(own, 2, STORY, publish_time=NOW)], now=NOW)
    assert ended.state is SlotState(own)
    assert ended.publish_time == NOW


def test_a_target_that_comes_back_gets_a_command_at_once() -> None:
    canceled = settle(slot(FEED, STORY), [report(JobState.CANCELED, 2, STORY)], now=NOW)
    for answers in ([], [report(JobState.READY, 2)]):
        before = settle(canceled, answers, now=NOW)
        assert before.is_answered == bool(answers)
        later = NOW + timedelta(seconds=1)
        revived = settle(before, [report(JobState.SCHEDULED, 3, STORY)], now=later)
        assert (revived.is_answered, revived.next_emit_at) == (False, later)
        assert "instagram_story" in [target.channel for target in still_wanted(revived.targets)]


def test_a_target_that_lost_its_time_gets_a_command_at_once() -> None:
    before = settle(slot(), [report(JobState.SCHEDULED, 2)], now=NOW)
    later = NOW + timedelta(seconds=1)
    assert settle(before, [report(JobState.PENDING, 4)], now=later).next_emit_at == later


def test_a_revived_target_completes_a_partially_published_slot() -> None:
    both = [report(JobState.PUBLISHED, 3, publish_time=NOW), report(JobState.CANCELED, 2, STORY)]
    partial = settle(slot(FEED, STORY), both, now=NOW)
    assert partial.state is SlotState.PARTIALLY_PUBLISHED
    revived = settle(partial, [report(JobState.READY, 3, STORY)], now=NOW)
    assert (revived.state, revived.next_emit_at) == (SlotState.PARTIALLY_PUBLISHED, None)
    complete = settle(revived, [report(JobState.PUBLISHED, 4, STORY, publish_time=NOW)], now=NOW)
    assert complete.state is SlotState.PUBLISHED


def test_a_deferral_shows_when_the_post_is_expected() -> None:
    until = NINE + timedelta(minutes=5)
    waiting = settle(slot(), [report(JobState.WAITING, 2, next_action_time=until)], now=NOW)
    assert waiting.expected_time == until
    sending = settle(waiting, [report(JobState.SENDING, 3)], now=NOW)
    assert sending.expected_time is None


def test_a_wait_that_ends_before_the_slots_time_is_not_shown() -> None:
    early = report(JobState.WAITING, 2, next_action_time=NINE - timedelta(seconds=1))
    assert settle(slot(), [early], now=NOW).expected_time is None


def test_an_ended_slot_never_lives_again() -> None:
    failed = settle(slot(), [report(JobState.FAILED, 2)], now=NOW)
    again = settle(failed, [report(JobState.READY, 3)], now=NOW)
    assert again.state is SlotState.FAILED
    published = settle(again, [report(JobState.PUBLISHED, 4, publish_time=NOW)], now=NOW)
    assert published.state is SlotState.PUBLISHED


@pytest.mark.parametrize("state", sorted(JobState))
def test_a_target_is_sent_now_until_its_job_has_ended_or_has_a_slot_again(state: JobState) -> None:
    begun = settle(slot(), [report(JobState.READY, 2, publish_now=True)], now=NOW)
    assert [target.sent_now for target in begun.targets] == [True]
    lined = settle(begun, [report(JobState.READY, 3, publish_now=None)], now=NOW)
    assert [target.sent_now for target in lined.targets] == [True]
    after = settle(lined, [report(state, 4, publish_now=True)], now=NOW)
    assert [target.sent_now for target in after.targets] == [state in UNDER_WAY]
    again = settle(lined, [report(state, 4)], now=NOW)
    assert [target.sent_now for target in again.targets] == [False]


@pytest.mark.parametrize("state", sorted(ENDED - {JobState.CANCELED}))
def test_what_publish_now_sends_leaves_a_canceled_slot_canceled(state: JobState) -> None:
    canceled = slot()._replace(state=SlotState.CANCELED, state_reason="REMOVED")
    after = settle(canceled, [report(state, 3, publish_now=True)], now=NOW)
    assert (after.state, after.state_reason) == (SlotState.CANCELED, "REMOVED")
    assert [target.job_state for target in after.targets] == [state]
    assert settle(canceled, [report(state, 3)], now=NOW).state is not SlotState.CANCELED


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.MISSED, JobState.CANCELED])
@pytest.mark.parametrize("publish_now", [True, False])
def test_a_run_that_ended_before_the_cancellation_is_shown(state: JobState, publish_now: bool) -> None:
    canceled = slot()._replace(state=SlotState.CANCELED, state_reason="REMOVED", revision=2)
    after = settle(canceled, [report(state, 3, publish_now=publish_now)], now=NOW)
    assert (after.state, after.state_reason) == (SlotState.CANCELED, "REMOVED")
    assert [target.job_state for target in after.targets] == [state]
    assert settle(after, [report(state, 3, publish_now=publish_now)], now=NOW).targets == after.targets


def test_a_run_of_an_older_slot_is_not_shown_on_a_canceled_one() -> None:
    canceled = slot()._replace(state=SlotState.CANCELED, state_reason="REMOVED", revision=2)
    assert settle(canceled, [report(JobState.FAILED, 3, slot_id="s0", publish_now=True)], now=NOW) == canceled


def test_an_older_report_leaves_a_canceled_slot_canceled() -> None:
    canceled = slot()._replace(state=SlotState.CANCELED, state_reason="REMOVED")
    sent = settle(canceled, [report(JobState.PUBLISHED, 3, publish_now=True, publish_time=NOW)], now=NOW)
    stored = sent._replace(targets=tuple(target._replace(report=None) for target in sent.targets))
    assert settle(stored, [report(JobState.SCHEDULED, 2)], now=NOW) == stored


def test_a_retry_after_publish_now_counts_the_same_in_one_batch_and_in_two() -> None:
    canceled = slot()._replace(state=SlotState.CANCELED, state_reason="REMOVED")
    failed = report(JobState.FAILED, 2, publish_now=True)
    retried = report(JobState.PUBLISHED, 3, publish_time=NOW)
    in_two = settle(settle(canceled, [failed], now=NOW), [retried], now=NOW)
    assert settle(canceled, [failed, retried], now=NOW) == in_two


reports = st.lists(
    st.tuples(st.sampled_from(sorted(JobState)), st.integers(1, 6), st.sampled_from([FEED, STORY])).map(
        # A version has one state, however often it is reported.
        lambda each: report(
            sorted(JobState)[(each[1] * 5 + len(each[2][0])) % len(JobState)],
            each[1],
            each[2],
            next_action_time=NINE + timedelta(minutes=each[1]),
            publish_time=NINE + timedelta(seconds=each[1]),
        )
    ),
    max_size=8,
)


@given(reports, st.randoms(use_true_random=False), st.integers(1, 8))
def test_the_targets_do_not_depend_on_order_repetition_or_batches(
    given_reports: list[JobReport], random: Random, size: int
) -> None:
    at_once = settle(slot(FEED, STORY), given_reports, now=NOW)
    shuffled = [*given_reports, *given_reports]
    random.shuffle(shuffled)
    in_batches = slot(FEED, STORY)
    for start in range(0, len(shuffled), size):
        in_batches = settle(in_batches, shuffled[start : start + size], now=NOW)
    assert in_batches.targets == at_once.targets
    if all(target.job_state in ENDED for target in at_once.targets):
        assert in_batches.state is at_once.state


def test_a_repeated_report_to_an_ended_slot_changes_nothing() -> None:
    ended = settle(slot(), [report(JobState.PUBLISHED, 4, publish_time=NOW)], now=NOW)
    assert settle(ended, [report(JobState.PUBLISHED, 4, publish_time=NOW)], now=NOW + timedelta(hours=1)) == ended
