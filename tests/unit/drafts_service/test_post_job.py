from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafts_service.domain.post_job import (
    COUNTED_AS_ENDED,
    IN_FLIGHT,
    OPEN,
    DraftState,
    FoldedState,
    JobState,
    PostJob,
    fold,
    latest,
    shown_targets,
)
from drafts_service.domain.target import Target

# Two targets of jobs in a history, whose other jobs have removed targets, and one target without a job.
TARGETS = [Target(social_account_id=f"account-{number}", channel="facebook") for number in (0, 1, 7)]
NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TEN = NINE + timedelta(hours=1)


def job(
    state: JobState,
    *,
    id: str = "",  # noqa: A002 - as the field is called
    version: int = 1,
    schedule_time: datetime | None = None,
    publish_time: datetime | None = None,
    account: str = "account",
    part: int = 0,
) -> PostJob:
    return PostJob(
        organization_id="org",
        id=id or f"job-{state}",
        draft_id="draft",
        version=version,
        target=Target(social_account_id=account, channel="facebook"),
        state=state,
        schedule_time=schedule_time,
        publish_time=publish_time,
        part=part,
    )


def state_of(
    state: DraftState, *, schedule_time: datetime | None = None, publish_time: datetime | None = None
) -> FoldedState:
    return FoldedState(state=state, schedule_time=schedule_time, publish_time=publish_time)


def folded(jobs: Iterable[PostJob], *more: str) -> FoldedState:
    """Folds a draft that has the targets of these jobs, and those of these accounts."""
    jobs = list(jobs)
    return fold({each.target for each in jobs} | {target(account) for account in more}, jobs)


def target(account: str) -> Target:
    return Target(social_account_id=account, channel="facebook")


def test_every_state_of_a_job_is_in_flight_open_ended_or_canceled() -> None:
    assert IN_FLIGHT | OPEN | COUNTED_AS_ENDED | {JobState.CANCELED} == set(JobState)
    assert len(IN_FLIGHT) + len(OPEN) + len(COUNTED_AS_ENDED) + 1 == len(JobState)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("", DraftState.DRAFT),
        ("CANCELED", DraftState.DRAFT),
        ("PENDING", DraftState.DRAFT),
        ("PENDING PUBLISHED", DraftState.PARTIALLY_PUBLISHED),
        ("PENDING FAILED", DraftState.DRAFT),
        ("BLOCKED WAITING READY", DraftState.DRAFT),
        ("SENDING", DraftState.PUBLISHING),
        ("UNKNOWN", DraftState.PUBLISHING),
        ("SENDING PENDING FAILED NEEDS_ATTENTION PUBLISHED", DraftState.PUBLISHING),
        ("PUBLISHED", DraftState.PUBLISHED),
        ("PUBLISHED CANCELED", DraftState.PARTIALLY_PUBLISHED),
        ("PUBLISHED FAILED", DraftState.PARTIALLY_PUBLISHED),
        ("PUBLISHED MISSED", DraftState.PARTIALLY_PUBLISHED),
        ("PUBLISHED FAILED NEEDS_ATTENTION", DraftState.NEEDS_ATTENTION),
        ("PUBLISHED NEEDS_ATTENTION", DraftState.NEEDS_ATTENTION),
        ("NEEDS_ATTENTION CANCELED", DraftState.NEEDS_ATTENTION),
        ("FAILED", DraftState.FAILED),
        ("MISSED", DraftState.FAILED),
        ("FAILED MISSED CANCELED", DraftState.FAILED),
    ],
)
def test_the_states_of_the_jobs_decide_the_draft_state_in_any_order(states: str, expected: DraftState) -> None:
    jobs = [job(JobState(state), account=state) for state in states.split()]
    for order in permutations(jobs):
        assert folded(order).state is expected


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("", DraftState.DRAFT),
        ("PUBLISHED", DraftState.PARTIALLY_PUBLISHED),
        ("FAILED", DraftState.FAILED),
        ("SENDING", DraftState.PUBLISHING),
        ("NEEDS_ATTENTION PUBLISHED", DraftState.NEEDS_ATTENTION),
    ],
)
def test_a_target_without_a_post_job_keeps_a_draft_from_published(states: str, expected: DraftState) -> None:
    jobs = [job(JobState(state), account=state) for state in states.split()]
    assert folded(jobs, "without a job").state is expected


@pytest.mark.parametrize(
    ("former", "expected"),
    [
        (JobState.CANCELED, DraftState.PUBLISHED),
        (JobState.FAILED, DraftState.PUBLISHED),
        (JobState.MISSED, DraftState.PUBLISHED),
        (JobState.PUBLISHED, DraftState.PUBLISHED),
        (JobState.SENDING, DraftState.PUBLISHING),
        (JobState.UNKNOWN, DraftState.PUBLISHING),
        (JobState.NEEDS_ATTENTION, DraftState.NEEDS_ATTENTION),
    ],
)
def test_a_removed_target_counts_while_its_post_may_be_out(former: JobState, expected: DraftState) -> None:
    jobs = [job(JobState.PUBLISHED, id="has", account="has"), job(former, id="had", account="had")]
    assert fold([target("has")], jobs).state is expected


def test_a_draft_whose_removed_target_is_out_is_partially_published() -> None:
    former = job(JobState.PUBLISHED, id="had", account="had")
    assert fold([target("has")], [former]).state is DraftState.PARTIALLY_PUBLISHED
    failed = job(JobState.FAILED, account="has")
    assert fold([target("has")], [former, failed]).state is DraftState.PARTIALLY_PUBLISHED


def test_a_draft_is_blocked_if_all_its_scheduled_jobs_are() -> None:
    blocked = job(JobState.BLOCKED, schedule_time=NINE, account="a")
    assert folded([blocked]) == state_of(DraftState.BLOCKED, schedule_time=NINE)
    assert folded([blocked, job(JobState.PENDING, account="b")]).state is DraftState.BLOCKED
    assert folded([blocked, job(JobState.PUBLISHED, account="b")]).state is DraftState.BLOCKED
    assert folded([blocked, job(JobState.WAITING, schedule_time=TEN, account="b")]).state is DraftState.SCHEDULED
    assert folded([blocked, job(JobState.SENDING, account="b")]).state is DraftState.PUBLISHING


@pytest.mark.parametrize("state", sorted(OPEN - {JobState.BLOCKED}))
def test_an_open_job_with_a_time_makes_the_draft_scheduled(state: JobState) -> None:
    jobs = [job(state, schedule_time=NINE), job(JobState.PENDING, id="other"), job(JobState.FAILED)]
    assert folded(jobs) == state_of(DraftState.SCHEDULED, schedule_time=NINE)


def test_the_earliest_time_of_an_unfinished_job_is_shown() -> None:
    jobs = [
        job(JobState.PUBLISHED, schedule_time=NINE - timedelta(days=1), publish_time=NINE),
        job(JobState.CANCELED, schedule_time=NINE - timedelta(days=1)),
        job(JobState.SCHEDULED, schedule_time=TEN),
        job(JobState.READY, schedule_time=NINE),
    ]
    assert folded(jobs) == state_of(DraftState.SCHEDULED, schedule_time=NINE)


def test_a_draft_keeps_its_time_while_a_target_is_being_sent() -> None:
    assert folded([job(JobState.SENDING, schedule_time=NINE)]) == state_of(DraftState.PUBLISHING, schedule_time=NINE)


def test_a_published_draft_shows_when_its_first_target_went_out() -> None:
    jobs = [job(JobState.PUBLISHED, id="b", publish_time=TEN), job(JobState.PUBLISHED, id="a", publish_time=NINE)]
    assert folded(jobs) == state_of(DraftState.PUBLISHED, publish_time=NINE)


def test_a_partially_published_draft_shows_no_publish_time() -> None:
    jobs = [job(JobState.PUBLISHED, publish_time=NINE), job(JobState.FAILED)]
    assert folded(jobs).publish_time is None


def test_jobs_of_two_organizations_with_one_id_are_two_jobs() -> None:
    one = job(JobState.PENDING, id="job", version=7)
    other = PostJob(
        organization_id="other", id="job", draft_id="draft", version=1, target=one.target, state=JobState.FAILED
    )
    assert latest([one, other]) == [one, other]


def test_targets_are_shown_in_order_and_removed_ones_last() -> None:
    targets = [target("second"), target("without a job"), target("first")]
    former = job(JobState.PUBLISHED, id="a", account="former")
    canceled = job(JobState.CANCELED, id="b", account="canceled")
    first = job(JobState.CANCELED, id="c", account="first")
    second = job(JobState.PENDING, id="d", account="second")
    assert shown_targets(targets, [former, canceled, first, second]) == [
        (target("second"), second),
        (target("without a job"), None),
        (target("first"), first),
        (target("former"), former),
    ]


moments = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[PostJob], list[PostJob]]:
    """Draws all events of some jobs, and those that arrive: shuffled, duplicated, some lost but never a job's last."""
    events: list[PostJob] = []
    arriving: list[PostJob] = []
    for number in range(draw(st.integers(0, 4))):
        length = draw(st.integers(1, 5))
        # Some are follow-ups of the first one, or of each other.
        part = draw(st.sampled_from([0, number]))
        history = [
            job(
                draw(st.sampled_from(JobState)),
                id=f"job-{number}",
                version=version,
                schedule_time=draw(st.none() | moments),
                publish_time=draw(st.none() | moments),
                account="account-0" if part else f"account-{number}",
                part=part,
            )
            for version in range(1, length + 1)
        ]
        events += history
        arriving += [event for event in history[:-1] if draw(st.booleans())] + history[-1:]
    arriving += draw(st.lists(st.sampled_from(arriving), max_size=6)) if arriving else []
    return events, draw(st.permutations(arriving))


@given(histories())
def test_order_duplicates_and_loss_of_older_events_change_nothing(
    histories: tuple[list[PostJob], list[PostJob]],
) -> None:
    events, arriving = histories
    assert fold(TARGETS, latest(arriving)) == fold(TARGETS, latest(events))


@given(histories(), st.integers(1, 5))
def test_events_in_batches_fold_to_the_same_state_as_at_once(
    histories: tuple[list[PostJob], list[PostJob]], size: int
) -> None:
    events, arriving = histories
    known: Sequence[PostJob] = []
    for start in range(0, len(arriving), size):
        known = latest([*known, *arriving[start : start + size]])
    assert fold(TARGETS, known) == fold(TARGETS, latest(events))


@given(histories())
def test_a_time_is_shown_only_in_the_states_that_have_one(histories: tuple[list[PostJob], list[PostJob]]) -> None:
    events, _ = histories
    found = fold(TARGETS, latest(events))
    assert found.publish_time is None or found.state is DraftState.PUBLISHED
    assert found.schedule_time is None or found.state in {
        DraftState.SCHEDULED,
        DraftState.BLOCKED,
        DraftState.PUBLISHING,
    }


def test_a_draft_whose_jobs_have_lost_their_times_is_a_draft_again() -> None:
    """A job loses its time when its slot is canceled, or when its command is taken back."""
    unscheduled = job(JobState.PENDING, id="a", account="a", version=3)
    taken_back = job(JobState.CANCELED, id="b", account="b", version=3, schedule_time=NINE)
    before = [
        job(JobState.SCHEDULED, id="a", account="a", version=2, schedule_time=TEN),
        job(JobState.READY, id="b", account="b", version=2, schedule_time=NINE),
    ]
    assert folded(before) == state_of(DraftState.SCHEDULED, schedule_time=NINE)
    assert folded([before[0], taken_back]) == state_of(DraftState.SCHEDULED, schedule_time=TEN)
    assert folded([unscheduled, before[1]]) == state_of(DraftState.SCHEDULED, schedule_time=NINE)
    for heard in permutations([*before, unscheduled, taken_back]):
        assert folded(latest(heard)) == state_of(DraftState.DRAFT)
    published = job(JobState.PUBLISHED, id="c", account="c", publish_time=NINE)
    assert folded([unscheduled, taken_back, published]) == state_of(DraftState.PARTIALLY_PUBLISHED)


def test_the_time_of_a_draft_follows_its_slots_both_ways() -> None:
    for time in (TEN, NINE, TEN):
        moved = job(JobState.SCHEDULED, id="a", account="a", schedule_time=time)
        later = job(JobState.SCHEDULED, id="b", account="b", schedule_time=TEN + timedelta(hours=1))
        assert folded([moved, later]) == state_of(DraftState.SCHEDULED, schedule_time=time)
