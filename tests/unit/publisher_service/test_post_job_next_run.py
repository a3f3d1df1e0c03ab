"""A new run begins the same way whether the slot's event or its command comes first."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from postflow.queue.v1.publish_command_pb2 import PublishCommand
from postflow.target.v1.target_pb2 import Target as TargetMessage
from publisher_service.domain.claim import Command, Verdict, command_of
from publisher_service.domain.plan import Slot, after_slot, local_month
from publisher_service.domain.post_job import ENDED_RUN, JobState, PostJob, Target
from publisher_service.domain.refusal import refused
from publisher_service.wire.commands import command_from

NOW = datetime(2026, 3, 31, 23, 30, tzinfo=UTC)
PAGE = Target(social_account_id="page", channel="facebook")
SLOT = Slot(
    organization_id="acme",
    slot_id="slot-2",
    sequence=2,
    revision=1,
    draft_id="draft",
    targets=(PAGE,),
    schedule_time=NOW,
    not_after=NOW + timedelta(hours=1),
    target_month="2026-04-01",
    traceparent="",
)
COMMAND = Command(
    organization_id="acme",
    draft_id="draft",
    target=PAGE,
    slot_sequence=2,
    slot_id="slot-2",
    slot_revision=1,
    emission=1,
    schedule_time=NOW,
    not_after=NOW + timedelta(hours=1),
    content_revision=1,
    max_attempts=5,
    target_month="2026-04-01",
    traceparent="",
)


def ended(state: JobState) -> PostJob:
    return PostJob(
        organization_id="acme",
        id="job",
        draft_id="draft",
        target=PAGE,
        state=state,
        slot_sequence=1,
        slot_id="slot-1",
        slot_revision=1,
        run=1,
        attempts=5,
        error_reason="HTTP_400",
        error_message="too long",
        target_month="2026-03-01",
        create_time=NOW,
        update_time=NOW,
    )


@pytest.mark.parametrize("state", sorted(ENDED_RUN))
def test_a_refused_command_begins_the_same_run_as_the_slot(state: JobState) -> None:
    by_slot = after_slot(ended(state), SLOT, now=NOW)
    by_command = refused(ended(state), COMMAND, Verdict.NOT_APPROVED, now=NOW)
    assert (by_slot.state, by_command.state) == (JobState.SCHEDULED, JobState.BLOCKED)
    names = ("run", "attempts", "error_reason", "error_message", "target_month", "schedule_time", "not_after")
    assert [getattr(by_slot, name) for name in names] == [getattr(by_command, name) for name in names]
    assert (by_command.run, by_command.error_message, by_command.target_month) == (2, "", "2026-04-01")


def test_a_refused_command_without_a_month_keeps_the_jobs_month() -> None:
    command = replace(COMMAND, target_month="")
    assert refused(ended(JobState.FAILED), command, Verdict.NOT_APPROVED, now=NOW).target_month == "2026-03-01"


@pytest.mark.parametrize(("zone", "month"), [("Europe/Berlin", "2026-04-01"), ("UTC", "2026-03-01"), ("", "")])
def test_a_command_has_the_local_month_of_its_time(zone: str, month: str) -> None:
    message = PublishCommand(
        organization_id="acme",
        slot_id="slot",
        draft_id="draft",
        target=TargetMessage(social_account_id="page", channel="facebook"),
        time_zone=zone,
    )
    message.schedule_time.FromDatetime(NOW)
    message.not_after.FromDatetime(NOW)
    assert command_from(message).target_month == month


def test_the_command_of_a_job_repeats_its_month() -> None:
    job = after_slot(ended(JobState.FAILED), SLOT, now=NOW)
    assert command_of(job).target_month == job.target_month


@pytest.mark.parametrize(
    ("time", "zone"),
    [(datetime(1, 1, 1, tzinfo=UTC), "America/New_York"), (datetime(9999, 12, 31, 23, tzinfo=UTC), "Asia/Tokyo")],
)
def test_a_local_date_that_no_date_can_hold_has_the_utc_month(time: datetime, zone: str) -> None:
    assert local_month(time, zone) == time.date().replace(day=1).isoformat()
