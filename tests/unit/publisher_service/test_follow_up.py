"""Follow-ups: what each follows, until when it may go out, and why it cannot."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.rules import FollowUpKind, FollowUpRule, TextRule
from publisher_service.domain.follow_up import Parent, Unfollowed, begun, is_passed_on, name_of, next_part, parent_of
from publisher_service.domain.limits import counts_for_limits
from publisher_service.domain.plan import new_job
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from tests.unit.publisher_service.post_jobs import LATER, NOW, PAGE, check, jobs, sending

COMMENTS = FollowUpRule(kind=FollowUpKind.COMMENT, most=9, text=TextRule(most=100))
THREADS = replace(COMMENTS, kind=FollowUpKind.THREAD)
MAIL = Target(social_account_id="page", channel="email", destination="ann@example.com")


def out(part: int, *, name: str = "out", follows: str = "") -> PostJob:
    published = replace(sending(), state=JobState.PUBLISHED, next_action_time=None, publish_time=NOW)
    return replace(published, part=part, external_id=name, follows=follows, evidence_kind="PROVIDER_ID")


def follow_up(part: int = 1, *, target: Target = PAGE) -> PostJob:
    return new_job("acme", "draft", target, below=0, part=part, parts=1, now=NOW)


@pytest.mark.parametrize(
    ("before", "rule", "name"),
    [
        (out(0), COMMENTS, "out"),
        (out(1, name="comment", follows="post"), COMMENTS, "post"),
        (out(1, name="", follows="post"), COMMENTS, "post"),
        (out(0), THREADS, "out"),
        (out(1, name="second", follows="first"), THREADS, "second"),
    ],
)
def test_a_comment_follows_the_post_and_a_thread_its_last_part(before: PostJob, rule: FollowUpRule, name: str) -> None:
    assert parent_of(before, rule) == Parent(name=name)


@pytest.mark.parametrize(
    ("before", "rule", "reason"),
    [
        (out(0, name=""), COMMENTS, Unfollowed.PARENT_NOT_NAMED),
        (out(1, name="", follows="first"), THREADS, Unfollowed.PARENT_NOT_NAMED),
        (sending(), COMMENTS, Unfollowed.PARENT_NOT_PUBLISHED),
        (out(0), None, Unfollowed.FOLLOW_UPS_NOT_TAKEN),
    ],
)
def test_what_has_no_name_cannot_be_followed(before: PostJob, rule: FollowUpRule | None, reason: Unfollowed) -> None:
    found = parent_of(before, rule)
    assert (found.name, found.reason) == ("", reason)
    assert found.words


def test_a_follow_up_that_begins_is_due_at_once() -> None:
    before = replace(out(0), max_attempts=3, content_revision=4, traceparent="trace")
    after = begun(follow_up(), before, Parent(name="out"), now=LATER)
    check(follow_up(), after)
    assert (after.state, after.next_action_time, after.schedule_time) == (JobState.READY, LATER, LATER)
    assert (after.follows, after.max_attempts, after.wanted_revision, after.traceparent) == ("out", 3, 4, "trace")
    assert after.is_sent_now
    assert after.over_cap


@pytest.mark.parametrize(("patience", "expected"), [(timedelta(hours=1), timedelta(days=1)), (timedelta(days=3),) * 2])
def test_a_follow_up_may_be_as_late_as_its_post(patience: timedelta, expected: timedelta) -> None:
    before = replace(out(0), schedule_time=NOW, not_after=NOW + patience)
    assert begun(follow_up(), before, Parent(name="out"), now=LATER).not_after == LATER + expected


def test_a_follow_up_to_a_person_keeps_to_window_spacing_and_cap() -> None:
    after = begun(follow_up(target=MAIL), out(0), Parent(name="out"), now=LATER)
    assert (after.is_called, after.is_sent_now, after.over_cap) == (True, False, False)
    assert counts_for_limits(after)


def test_comments_count_for_no_limit() -> None:
    assert not counts_for_limits(follow_up())
    assert counts_for_limits(follow_up(part=0))


def test_a_follow_up_that_can_follow_nothing_has_failed() -> None:
    parent = Parent(reason=Unfollowed.PARENT_NOT_NAMED)
    after = begun(follow_up(), out(0, name=""), parent, now=LATER)
    check(follow_up(), after)
    assert (after.state, after.error_reason, after.error_message) == (JobState.FAILED, parent.reason, parent.words)
    assert not is_passed_on(after)


@given(jobs())
def test_only_what_is_out_or_not_taken_is_passed_on(job: PostJob) -> None:
    assert is_passed_on(job) == (job.state is JobState.PUBLISHED)
    refused = replace(job, part=1, state=JobState.FAILED, error_reason=Unfollowed.FOLLOW_UPS_NOT_TAKEN)
    assert is_passed_on(refused)


@given(st.integers(0, 60))
def test_the_next_part_has_an_id_that_can_be_computed(part: int) -> None:
    assert next_part(replace(sending(), part=part)) == ("acme", job_id("acme", "draft", PAGE, part + 1))


def test_people_call_parts_by_their_place() -> None:
    assert [name_of(part, FollowUpKind.COMMENT) for part in (0, 1, 10, 11)] == [
        "the post",
        "the first comment",
        "the tenth comment",
        "comment 11",
    ]
    assert name_of(2, FollowUpKind.THREAD) == "part 3 of the thread"
