"""The states of a post job: whatever happens, the next version keeps what the tables check."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from publisher_service.domain.claim import Command, Verdict
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    AuthRefused,
    Found,
    NotSent,
    NotTried,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.plan import (
    SavedDraft,
    Slot,
    after_save,
    after_slot,
    canceled,
    missing_targets,
    released,
    slots_of_others,
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
    job_id,
    kind_of,
    moved,
)
from publisher_service.domain.refusal import CHANGING, DOUBTED, refused
from publisher_service.domain.settlement import AttemptState, evidence, settle, uncertain

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
LATE = LATER + timedelta(hours=24)
POLICY = Policy()
PAGE = Target(social_account_id="page", channel="facebook")

words = st.text(min_size=1, max_size=10)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Accepted, external_id=words, external_url=words),
    st.builds(Rejected, reason=words, message=words),
    st.builds(AuthRefused, message=words),
    st.builds(NotSent, reason=words, message=words),
    st.builds(NotTried, reason=words, message=words),
    st.builds(RateLimited, message=words, retry_after=st.timedeltas(timedelta(seconds=1), timedelta(days=1))),
    st.builds(Ambiguous, reason=words, message=words),
)


_REASONS: dict[JobState, list[Reason]] = {state: [Reason.NONE] for state in JobState} | {
    JobState.READY: [Reason.NONE, Reason.IN_LINE],
    JobState.WAITING: [Reason.CONTENT_PENDING, Reason.RATE_LIMITED, Reason.RETRY],
    JobState.BLOCKED: [Reason.NOT_APPROVED, Reason.WITHDRAWN, Reason.ACCOUNT_NOT_CONNECTED],
    JobState.CANCELED: [Reason.NONE, Reason.TARGET_REMOVED],
}
_MAY_BE_IN_DOUBT = (NOT_STARTED | OPEN_ATTEMPT | {JobState.NEEDS_ATTENTION}) - {JobState.PENDING}


@st.composite
def jobs(draw: st.DrawFn, *states: JobState) -> PostJob:
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
    """What a move must keep; the same rules stand as CHECKs on the table."""
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


@given(jobs(JobState.SENDING), outcomes)
def test_every_outcome_settles_into_a_state_that_may_follow(job: PostJob, outcome: Outcome) -> None:
    settlement = settle(job, outcome, policy=POLICY, now=NOW, draw=0.5)
    check(job, settlement.job)
    assert settlement.job.last_attempt_time == NOW
    assert settlement.attempt_state is not AttemptState.SENDING
    assert settlement.disconnects == isinstance(outcome, AuthRefused)


@pytest.mark.parametrize(
    ("outcome", "state", "reason", "attempt"),
    [
        (Accepted(external_id="x", external_url="u"), JobState.PUBLISHED, "", AttemptState.ACCEPTED),
        (Rejected(reason="TOO_LONG", message="m"), JobState.FAILED, "", AttemptState.REJECTED),
        (AuthRefused(message="m"), JobState.BLOCKED, Reason.ACCOUNT_NOT_CONNECTED, AttemptState.REJECTED),
        (NotSent(reason="R", message="m"), JobState.WAITING, Reason.RETRY, AttemptState.NOT_SENT),
        (NotTried(reason="R", message="m"), JobState.WAITING, Reason.RETRY, AttemptState.NOT_SENT),
        (
            RateLimited(message="m", retry_after=timedelta(seconds=7)),
            JobState.WAITING,
            Reason.RATE_LIMITED,
            AttemptState.NOT_SENT,
        ),
        (Ambiguous(reason="R", message="m"), JobState.UNKNOWN, "", AttemptState.UNKNOWN),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Outcome) else "",
)
def test_an_outcome_and_what_it_makes_of_the_job(
    outcome: Outcome, state: JobState, reason: str, attempt: AttemptState
) -> None:
    settlement = settle(sending(), outcome, policy=POLICY, now=NOW, draw=0.5)
    assert (settlement.job.state, settlement.job.state_reason, settlement.attempt_state) == (state, reason, attempt)


@given(jobs(JobState.SENDING), st.sampled_from([NotTried, RateLimited]))
def test_what_was_not_begun_or_was_put_off_costs_no_attempt(
    job: PostJob, kind: type[NotTried] | type[RateLimited]
) -> None:
    outcome = (
        NotTried(reason="R", message="m") if kind is NotTried else RateLimited(message="m", retry_after=timedelta(1))
    )
    after = settle(job, outcome, policy=POLICY, now=NOW, draw=0.5).job
    assert (after.state, after.attempts) == (JobState.WAITING, job.attempts - 1)


@given(jobs(JobState.SENDING))
def test_attempts_that_were_not_sent_run_out(job: PostJob) -> None:
    after = settle(job, NotSent(reason="R", message="m"), policy=POLICY, now=NOW, draw=0.5).job
    used_up = JobState.UNKNOWN if job.in_doubt else JobState.FAILED
    assert after.state is (used_up if job.attempts >= job.max_attempts else JobState.WAITING)
    assert after.attempts == job.attempts


def test_an_account_that_is_refused_blocks_the_job_until_it_would_be_missed() -> None:
    assert settle(sending(), AuthRefused(message="m"), policy=POLICY, now=NOW, draw=0.5).job.next_action_time == LATER


def test_a_lost_sender_leaves_a_question_that_is_asked_after_the_settle_time() -> None:
    lost = uncertain(sending(), "SENDER_LOST", "m", policy=POLICY, now=NOW)
    assert (lost.job.state, lost.attempt_state) == (JobState.UNKNOWN, AttemptState.UNKNOWN)
    assert lost.job.next_action_time == NOW + POLICY.unknown_settle
    assert (lost.job.error_reason, lost.error_reason) == ("SENDER_LOST", "SENDER_LOST")


@given(jobs(*(state for state in JobState if state is not JobState.PUBLISHED)))
def test_proof_counts_in_every_state(job: PostJob) -> None:
    after = evidence(job, Found(external_id="x", external_url="u"), now=NOW).job
    check(job, after)
    assert (after.state, after.external_id, after.error_reason) == (JobState.PUBLISHED, "x", "")


@given(jobs(), st.booleans(), st.booleans(), st.integers(1, 3))
def test_a_saved_draft_cancels_releases_or_leaves_alone(
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
def test_a_target_that_comes_back_goes_out_while_its_slot_lives(
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


def test_targets_coming_back_one_by_one_revive_no_slot_that_all_had_left() -> None:
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
def test_a_job_takes_a_newer_slot_unless_an_attempt_is_open_or_it_is_out(
    job: PostJob, sequence: int, slot_id: str, revision: int, is_target: bool
) -> None:
    placed = replace(slot(slot_id, revision, sequence=sequence), content_revision=2)
    after = after_slot(job, placed, is_target=is_target, now=LATER)
    check(job, after)
    newer = (sequence, slot_id, revision) > (job.slot_sequence, job.slot_id, job.slot_revision)
    takes = newer and job.state in NOT_STARTED | ENDED_RUN
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


@given(jobs(), st.sampled_from(sorted(CHANGING)), st.sampled_from(["", "slot-1", "slot-3"]))
def test_a_refusal_waits_blocks_or_misses(job: PostJob, verdict: Verdict, slot_id: str) -> None:
    assume(verdict is not Verdict.CONTENT_LOST or job.in_doubt)
    assume(verdict is not Verdict.EXHAUSTED or job.state in NOT_STARTED - {JobState.PENDING})
    after = refused(job, command(slot_id), verdict, now=NOW)
    if job.state in OPEN_ATTEMPT or job.state in (JobState.PUBLISHED, JobState.NEEDS_ATTENTION):
        assert after is job
        return
    if after.version == job.version:
        assert (after.state, after.state_reason, after.slot_id) == (job.state, job.state_reason, job.slot_id)
        assert after.next_action_time is not None
        return
    check(job, after)
    assert (after.slot_id, after.not_after, after.max_attempts) == (slot_id, LATER, 7)
    if after.state is not JobState.NEEDS_ATTENTION:
        assert after.error_message == ("" if job.state in ENDED_RUN else job.error_message)
    match verdict:
        case Verdict.MISSED:
            assert after.state is (JobState.NEEDS_ATTENTION if job.in_doubt else JobState.MISSED)
        case Verdict.REMOVED:
            assert after.state is (JobState.NEEDS_ATTENTION if job.in_doubt else JobState.CANCELED)
        case Verdict.EXHAUSTED:
            assert after.state is (JobState.NEEDS_ATTENTION if job.in_doubt else JobState.FAILED)
        case Verdict.CONTENT_LOST:
            assert (after.state, after.state_reason) == (JobState.UNKNOWN, Reason.CONTENT_LOST)
        case Verdict.WITHDRAWN if job.in_doubt:
            assert after.state is JobState.NEEDS_ATTENTION
        case Verdict.CONTENT_PENDING:
            assert (after.state, after.state_reason) == (JobState.WAITING, Reason.CONTENT_PENDING)
            assert after.next_action_time == LATER
        case _:
            assert (after.state, after.state_reason) == (JobState.BLOCKED, verdict.value)
            assert after.next_action_time == LATER


def test_the_same_refusal_again_is_no_news() -> None:
    blocked = refused(sending(JobState.SCHEDULED), command("slot-1"), Verdict.NOT_APPROVED, now=NOW)
    again = refused(blocked, command("slot-1"), Verdict.NOT_APPROVED, now=LATER)
    assert again == blocked
    withdrawn = refused(blocked, command("slot-1"), Verdict.WITHDRAWN, now=LATER)
    assert withdrawn.version == blocked.version + 1


def test_the_same_refusal_of_a_moved_slot_takes_over_its_times() -> None:
    """The command may come before the announcement of the move."""
    blocked = refused(sending(JobState.SCHEDULED), command("slot-1"), Verdict.NOT_APPROVED, now=NOW)
    moved_on = replace(command("slot-1"), slot_revision=2, schedule_time=LATER, not_after=LATE)
    again = refused(blocked, moved_on, Verdict.NOT_APPROVED, now=NOW)
    assert (again.state, again.version) == (JobState.BLOCKED, blocked.version + 1)
    assert (again.slot_revision, again.schedule_time, again.not_after) == (2, LATER, LATE)
    assert again.next_action_time == LATE


def test_what_rests_on_what_is_not_locked_is_doubted() -> None:
    assert DOUBTED | {Verdict.MISSED, Verdict.EXHAUSTED} == CHANGING


@given(jobs(JobState.WAITING, JobState.BLOCKED, JobState.READY))
def test_a_released_job_is_due_at_once(job: PostJob) -> None:
    after = released(job, now=LATER)
    check(job, after)
    assert (after.state, after.state_reason, after.next_action_time) == (JobState.READY, Reason.NONE, LATER)


@given(jobs(*NOT_STARTED))
def test_a_canceled_job_has_nothing_to_do(job: PostJob) -> None:
    check(job, canceled(job, now=LATER))


@given(jobs(), st.sampled_from(JobState))
def test_no_move_leaves_the_table_of_transitions(job: PostJob, state: JobState) -> None:
    until = LATER if state in WITH_NEXT_ACTION else None
    if state in TRANSITIONS[JobState(job.state)]:
        assert moved(job, state, now=NOW, until=until).state is state
    else:
        with pytest.raises(AssertionError, match=f"from {job.state} to {state}"):
            moved(job, state, now=NOW, until=until)


@given(st.sampled_from(JobState))
def test_a_move_has_a_next_action_exactly_where_one_is_due(state: JobState) -> None:
    before = next(job for job in JobState if state in {*TRANSITIONS[job], JobState.PENDING})
    until = None if state in WITH_NEXT_ACTION else LATER
    with pytest.raises(AssertionError):
        moved(sending(before), state, now=NOW, until=until)


def test_the_table_of_transitions_knows_every_state_and_leads_everywhere() -> None:
    assert set(TRANSITIONS) == set(JobState)
    assert set().union(*TRANSITIONS.values()) == set(JobState)
    assert TRANSITIONS[JobState.PUBLISHED] == frozenset()
    assert all(JobState.SENDING not in TRANSITIONS[state] for state in OPEN_ATTEMPT), "never two open tries"
    assert {kind_of(state) for state in JobState}
    assert len({kind_of(state) for state in JobState}) == len(JobState)


def test_targets_without_a_job_are_found_once() -> None:
    other = replace(PAGE, destination="chat")
    assert missing_targets([PAGE, other], [sending()]) == [other]


targets = st.builds(Target, social_account_id=words, channel=words, destination=st.text(max_size=10))
places = st.tuples(words, words, targets).filter(lambda place: "\0" not in f"{place[0]}{place[1]}{place[2]}")


@given(places, places)
def test_different_targets_have_different_jobs(one: tuple[str, str, Target], two: tuple[str, str, Target]) -> None:
    assert (job_id(*one) == job_id(*two)) == (one == two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("a", "bc", PAGE), ("ab", "c", PAGE)),
        (("a|b", "c", PAGE), ("a", "b|c", PAGE)),
        (
            ("a", "b", Target(social_account_id="c", channel="d", destination="")),
            ("a", "b", Target(social_account_id="c", channel="", destination="d")),
        ),
    ],
)
def test_a_separator_moved_makes_another_job(one: tuple[str, str, Target], two: tuple[str, str, Target]) -> None:
    assert job_id(*one) != job_id(*two)


def test_the_id_of_a_job_never_changes() -> None:
    """Stored rows, attempts and idempotency keys bear it."""
    assert job_id("acme", "draft", PAGE) == "427ac6e8-4fcf-8b5b-8354-61e77e84b4c0"
    assert job_id("acme", "draft", PAGE)[14] == "8"


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_retry_waits_between_a_tenth_of_the_first_delay_and_the_cap(attempts: int, draw: float) -> None:
    delay = POLICY.retry_delay(attempts, draw=draw)
    assert POLICY.retry_first / 20 <= delay <= POLICY.retry_cap


@given(st.integers(1, 8))
def test_the_bound_of_a_retry_doubles(attempts: int) -> None:
    bound = min(POLICY.retry_first * 2 ** (attempts - 1), POLICY.retry_cap)
    assert POLICY.retry_delay(attempts, draw=0.0) == bound / 10
    assert POLICY.retry_delay(attempts, draw=0.5) == bound * 0.55


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
