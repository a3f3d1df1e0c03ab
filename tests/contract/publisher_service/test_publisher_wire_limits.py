"""Limits on the wire: schedules as they are announced, and what a post job says about its limits."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from civil.windows import SendWindow
from postflow.publisher.v1 import post_job_pb2
from postflow.schedule.v1.account_schedule_pb2 import DAY_OF_WEEK_MONDAY, DAY_OF_WEEK_SUNDAY, LocalTime
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule as ScheduleMessage
from postflow.schedule.v1.account_schedule_pb2 import SendWindow as WindowMessage
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from publisher_service.domain.account_schedule import AccountSchedule
from publisher_service.domain.post_job import JobState, PostJob, Reason, Target
from publisher_service.wire.posts import post_job
from publisher_service.wire.schedules import account_schedule_from
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.timestamps import moment

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
WAITING = PostJob(
    organization_id="acme",
    id="job",
    draft_id="draft",
    target=Target(social_account_id="page", channel="facebook"),
    state=JobState.WAITING,
    state_reason=Reason.DAILY_CAP,
    next_action_time=LATER + timedelta(hours=8),
    create_time=NOW,
    update_time=NOW,
)


def announced(**fields: object) -> AccountScheduleChanged:
    known = {"social_account_id": "page", "time_zone": "Europe/Berlin", "version": 3}
    return AccountScheduleChanged(organization_id="acme", account_schedule=ScheduleMessage(**{**known, **fields}))  # type: ignore[arg-type]


def test_a_schedule_is_read_with_its_window_and_spacing() -> None:
    window = WindowMessage(
        days_of_week=[DAY_OF_WEEK_MONDAY, DAY_OF_WEEK_SUNDAY],
        start=LocalTime(hour=9),
        end=LocalTime(hour=17, minute=30),
    )
    message = announced(send_window=window, enabled=False)
    message.account_schedule.min_spacing.FromTimedelta(timedelta(minutes=5))
    assert account_schedule_from(message) == AccountSchedule(
        organization_id="acme",
        social_account_id="page",
        version=3,
        time_zone="Europe/Berlin",
        enabled=False,
        window=SendWindow(days=frozenset({1, 0}), start=time(9), end=time(17, 30)),
        min_spacing=timedelta(minutes=5),
    )


def test_a_schedule_that_says_nothing_limits_nothing() -> None:
    schedule = account_schedule_from(announced())
    assert (schedule.enabled, schedule.window, schedule.min_spacing) == (True, None, None)


def test_a_deleted_schedule_keeps_only_its_version() -> None:
    message = announced(send_window=WindowMessage(days_of_week=[DAY_OF_WEEK_MONDAY]), enabled=False)
    message.deleted = True
    gone = AccountSchedule(organization_id="acme", social_account_id="page", version=3, deleted=True)
    assert account_schedule_from(message) == gone


@pytest.mark.parametrize(
    "message",
    [
        announced(social_account_id=""),
        announced(time_zone="Mars/Olympus"),
        announced(time_zone=""),
        announced(send_window=WindowMessage()),
        announced(
            send_window=WindowMessage(days_of_week=[DAY_OF_WEEK_MONDAY], start=LocalTime(hour=9), end=LocalTime(hour=8))
        ),
        announced(send_window=WindowMessage(days_of_week=[DAY_OF_WEEK_MONDAY], start=LocalTime(hour=99))),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(message: AccountScheduleChanged) -> None:
    with pytest.raises(UnreadableMessage):
        account_schedule_from(message)


@pytest.mark.parametrize(
    ("channel", "action"),
    [
        ("facebook", post_job_pb2.ACTION_POST),
        ("email", post_job_pb2.ACTION_EMAIL),
        ("linkedin_message", post_job_pb2.ACTION_MESSAGE),
        ("linkedin_connection", post_job_pb2.ACTION_CONNECTION_REQUEST),
        ("linkedin_inmail", post_job_pb2.ACTION_INMAIL),
    ],
)
def test_a_post_job_says_what_its_send_counts_as(channel: str, action: post_job_pb2.Action) -> None:
    shown = post_job(replace(WAITING, target=Target(social_account_id="page", channel=channel, destination="7")))
    assert shown.action == action


def test_a_post_that_waits_for_a_limit_shows_when_that_lets_it_go() -> None:
    assert moment(post_job(replace(WAITING, expected_time=LATER)).expected_time) == LATER


@pytest.mark.parametrize("reason", [Reason.RETRY, Reason.RATE_LIMITED])
def test_a_post_that_waits_for_its_next_attempt_shows_when_that_is(reason: Reason) -> None:
    shown = post_job(replace(WAITING, state_reason=reason, next_action_time=LATER))
    assert moment(shown.expected_time) == LATER


@pytest.mark.parametrize("reason", [Reason.CONTENT_PENDING, Reason.DAILY_CAP])
def test_a_post_that_waits_for_nobody_knows_what_shows_no_time(reason: Reason) -> None:
    assert not post_job(replace(WAITING, state_reason=reason)).HasField("expected_time")
