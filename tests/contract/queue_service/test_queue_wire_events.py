"""Events that Queue consumes, also as earlier releases encoded them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from civil.zones import UnknownZone
from postflow.drafts.v1.draft_pb2 import Draft as DraftMessage
from postflow.drafts.v1.draft_targets_service_pb2 import DraftTargets
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.publisher_events_pb2 import (
    AcceptedCommand,
    CommandsAccepted,
    PostJobChanged,
    SocialAccountConnected,
    SocialAccountDisconnected,
)
from postflow.publisher.v1.social_account_pb2 import SocialAccount
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from postflow.target.v1 import target_pb2
from queue_service.domain.account import AnnouncedSchedule, Connection
from queue_service.domain.draft import Draft, SavedDraft, Target
from queue_service.domain.job import JobState
from queue_service.domain.settlement import JobReport
from queue_service.wire.connections import connection
from queue_service.wire.drafts import draft, drafts_by_key, saved_draft
from queue_service.wire.post_jobs import accepted_commands, job_report
from queue_service.wire.schedules import changed_schedule
from servicekit.faults import InvalidRequest

SLOT_TARGET = target_pb2.Target(social_account_id="page", channel="facebook", destination="42")
NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)

# Messages as the first release encoded them: they may wait in a stream for a month.
DRAFT_SAVED = bytes.fromhex(
    "0a0461636d6512026431180320022a040a026869324061626162616261626162616261626162616261626162616261626162616261626162"
    "616261626162616261626162616261626162616261626162616261626162380142140a0470616765120866616365626f6f6b1a023432420a"
    "0a0567726f7570120178"
)

SCHEDULE_CHANGED = bytes.fromhex("0a0461636d6512210a04706167651a0d4575726f70652f4265726c696e220408011009280330014007")
POST_JOB_CHANGED = bytes.fromhex(
    "0a0461636d6510071a540a026a31120264311a140a0470616765120866616365626f6f6b1a02343220052a0c524154455f4c494d49544544"
    "30093801420273314802520b0890a395cd06108094ef3a620b0890a395cd06108094ef3a6801"
)


def test_stored_events_still_decode() -> None:
    assert saved_draft(DraftSaved.FromString(DRAFT_SAVED)) == SavedDraft(
        draft=Draft(
            organization_id="acme",
            id="d1",
            revision=2,
            targets=(
                Target(social_account_id="page", channel="facebook", destination="42"),
                Target(social_account_id="group", channel="x", destination=""),
            ),
        ),
        version=3,
        is_approved=True,
    )
    assert changed_schedule(AccountScheduleChanged.FromString(SCHEDULE_CHANGED)) == AnnouncedSchedule(
        organization_id="acme",
        social_account_id="page",
        version=7,
        time_zone="Europe/Berlin",
        max_posts_per_day=3,
        enabled=True,
    )
    assert job_report(PostJobChanged.FromString(POST_JOB_CHANGED)) == JobReport(
        organization_id="acme",
        slot_id="s1",
        slot_revision=2,
        draft_id="d1",
        social_account_id="page",
        channel="facebook",
        destination="42",
        job_id="j1",
        state=JobState.WAITING,
        version=9,
        external_url="",
        error_message="",
        state_reason="RATE_LIMITED",
        next_action_time=NOW,
        publish_time=None,
    )


def test_a_post_that_waits_for_a_limit_is_expected_when_that_is_over() -> None:
    changed = PostJobChanged.FromString(POST_JOB_CHANGED)
    changed.post_job.expected_time.FromDatetime(NOW + timedelta(minutes=6))
    assert job_report(changed).next_action_time == NOW + timedelta(minutes=6)


def test_a_saved_draft_has_its_approval_its_time_and_its_category() -> None:
    message = DraftSaved.FromString(DRAFT_SAVED)
    message.category_id = "news"
    message.requested_time.FromDatetime(NOW)
    saved = saved_draft(message)
    assert (saved.is_approved, saved.requested_time, saved.draft.category_id) == (True, NOW, "news")


def test_drafts_have_their_categories_in_answers_too() -> None:
    found = drafts_by_key([DraftTargets(organization_id="acme", draft_id="d1", revision=2, category_id="news")])
    assert found["acme", "d1"].category_id == "news"
    assert draft("acme", DraftMessage(id="d1", category_id="news")).category_id == "news"


def test_accounts_are_connected_or_not() -> None:
    account = SocialAccount(id="page", version=7)
    connected = connection(SocialAccountConnected(organization_id="acme", social_account=account))
    gone = connection(SocialAccountDisconnected(organization_id="acme", social_account=account))
    assert connected == Connection(organization_id="acme", social_account_id="page", version=7, is_connected=True)
    assert gone == replace(connected, is_connected=False)


def test_accepted_commands_are_jobs_that_are_ready() -> None:
    command = AcceptedCommand(
        slot_id="s1", slot_revision=2, draft_id="d1", post_job_id="j1", version=9, target=SLOT_TARGET
    )
    other = AcceptedCommand()
    other.CopyFrom(command)
    other.slot_id = "s2"
    first, second = accepted_commands(CommandsAccepted(organization_id="acme", commands=[command, other]))
    assert first == job_report(PostJobChanged.FromString(POST_JOB_CHANGED))._replace(
        state=JobState.READY, state_reason="", next_action_time=None, publish_now=None
    )
    assert second == first._replace(slot_id="s2")


@pytest.mark.parametrize("state", JobState)
def test_every_job_state_is_decoded(state: JobState) -> None:
    changed = PostJobChanged.FromString(POST_JOB_CHANGED)
    changed.post_job.state = f"POST_JOB_STATE_{state}"  # type: ignore[assignment]
    assert job_report(PostJobChanged.FromString(changed.SerializeToString())).state is state


def test_an_announced_schedule_in_an_unknown_zone_is_refused() -> None:
    changed = AccountScheduleChanged.FromString(SCHEDULE_CHANGED)
    changed.account_schedule.time_zone = "Mars/Olympus"
    with pytest.raises(UnknownZone):
        changed_schedule(changed)


def test_an_event_without_a_required_field_is_refused() -> None:
    reads: list[tuple[Any, Callable[[Any], object]]] = [
        (DraftSaved(organization_id="acme"), saved_draft),
        (AccountScheduleChanged(organization_id="acme"), changed_schedule),
        (PostJobChanged(organization_id="acme"), job_report),
        (SocialAccountConnected(organization_id="acme"), connection),
        (SocialAccountDisconnected(organization_id="acme"), connection),
        (CommandsAccepted(organization_id="acme", commands=[AcceptedCommand()]), accepted_commands),
    ]
    for message, read in reads:
        with pytest.raises(InvalidRequest) as refused:
            read(message)
        assert refused.value.reason == "MALFORMED_EVENT"
