"""What Queue sends reads back as what it meant, and what was sent before still decodes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from civil.zones import UnknownZone
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.publisher_events_pb2 import (
    AcceptedCommand,
    CommandsAccepted,
    PostJobChanged,
    SocialAccountConnected,
    SocialAccountDisconnected,
)
from postflow.publisher.v1.social_account_pb2 import SocialAccount
from postflow.queue.v1.publish_command_pb2 import PublishCommand
from postflow.queue.v1.queue_events_pb2 import SlotMoved, SlotScheduled
from postflow.queue.v1.queue_service_pb2 import AddToQueueResponse, ListQueueSlotsResponse, ScheduleAtResponse
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, SlotTime
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from postflow.schedule.v1.schedule_service_pb2 import FindSlotTimesRequest, FindSlotTimesResponse
from postflow.target.v1 import target_pb2
from queue_service.domain.account import AnnouncedSchedule, Connection
from queue_service.domain.command import Command
from queue_service.domain.draft import Draft, SavedDraft, Target
from queue_service.domain.job import JobState
from queue_service.domain.listing import Position
from queue_service.domain.relocation import MovedSlot
from queue_service.domain.settlement import JobReport
from queue_service.domain.slot import QueueSlot, SlotOrigin, SlotState, SlotTarget
from queue_service.wire.announcements import slot_moved, slot_scheduled
from queue_service.wire.commands import publish_command
from queue_service.wire.connections import connection
from queue_service.wire.drafts import saved_draft
from queue_service.wire.post_jobs import accepted_commands, job_report
from queue_service.wire.schedules import changed_schedule, slot_times
from queue_service.wire.slots import (
    add_to_queue_response,
    cursor,
    list_queue_slots_response,
    position,
    queue_slot,
    schedule_at_response,
    states,
)
from servicekit.faults import InvalidRequest
from servicekit.timestamps import timestamp

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
PUBLISH_COMMAND = bytes.fromhex(
    "0a0461636d6512027331180220032a02643132140a0470616765120866616365626f6f6b1a0234323a0b0890a395cd06108094ef3a420b08"
    "90a395cd06108094ef3a480450055a0a30302d303132332d3031"
)
SLOT_SCHEDULED = bytes.fromhex(
    "0a0461636d65120273311802220264312a047061676532140a0470616765120866616365626f6f6b1a0234323a0b0890a395cd06108094ef"
    "3a4203555443"
)
SLOT_MOVED = bytes.fromhex(
    "0a0461636d65120273311803220264312a047061676532140a0470616765120866616365626f6f6b1a02343232090a04706167651201783a"
    "0b0890a395cd06108094ef3a420b08808795cd06108094ef3a4a0d4575726f70652f4265726c696e5210323032362d30332d30325431303a"
    "30305801"
)

moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)).map(lambda each: each.replace(tzinfo=UTC))

SLOT = QueueSlot(
    organization_id="acme",
    id="s1",
    draft_id="d1",
    social_account_id="page",
    schedule_time=NOW,
    state=SlotState.NEEDS_ATTENTION,
    origin=SlotOrigin.QUEUE,
    revision=2,
    targets=(SlotTarget(channel="facebook", destination="42", job_id="j1", job_state=JobState.UNKNOWN, job_version=3),),
    not_after=NOW + timedelta(days=1),
    time_zone="Europe/Berlin",
    local_date=date(2026, 3, 2),
    local_time=time(10, 0, 0, 123456),
    content_revision=4,
    traceparent="00-0123-01",
    create_time=NOW,
    update_time=NOW,
    publish_time=NOW,
)
COMMAND = Command(
    organization_id="acme",
    slot_id="s1",
    revision=2,
    emission=3,
    draft_id="d1",
    social_account_id="page",
    channel="facebook",
    destination="42",
    schedule_time=NOW,
    not_after=NOW,
    content_revision=4,
    traceparent="00-0123-01",
    slot_sequence=0,
    time_zone="",
)


@given(moments, st.text())
def test_a_position_survives_a_page_token(instant: datetime, slot_id: str) -> None:
    before = Position(schedule_time=instant, slot_id=slot_id)
    assert position(cursor(before)) == before


def test_a_slot_is_shown_with_everything_that_is_known_of_it() -> None:
    shown = queue_slot(SLOT)
    assert (shown.local_date, shown.local_time) == ("2026-03-02", "10:00")
    assert shown.targets[0].post_job_state == "UNKNOWN"
    assert not shown.HasField("expected_time")
    assert shown.publish_time == shown.create_time == shown.schedule_time


@pytest.mark.parametrize("state", SlotState)
@pytest.mark.parametrize("origin", SlotOrigin)
def test_every_state_and_origin_has_its_number(state: SlotState, origin: SlotOrigin) -> None:
    shown = queue_slot(replace(SLOT, state=state, origin=origin))
    assert states([shown.state, shown.state]) == (state,)
    assert shown.origin != 0


@pytest.mark.parametrize(
    ("encode", "response"),
    [
        (add_to_queue_response, AddToQueueResponse),
        (schedule_at_response, ScheduleAtResponse),
        (lambda slots: list_queue_slots_response(slots, "next"), ListQueueSlotsResponse),
    ],
)
def test_every_field_of_a_response_is_filled(encode: Callable[[list[QueueSlot]], Message], response: type) -> None:
    """A field added to one response only must be filled there: each response is encoded as itself."""
    answer = encode([SLOT, replace(SLOT, id="s2")])
    assert type(answer) is response
    assert {field.name for field, _ in answer.ListFields()} == set(response.DESCRIPTOR.fields_by_name)
    assert [shown.id for shown in answer.queue_slots] == ["s1", "s2"]  # type: ignore[attr-defined]


def test_a_command_is_what_it_was() -> None:
    outgoing = publish_command(COMMAND, 5)
    assert PublishCommand.FromString(outgoing.payload) == PublishCommand.FromString(PUBLISH_COMMAND)
    assert outgoing.subject == "publish.52.acme"


def test_a_command_says_which_slot_is_the_newer_and_the_zone() -> None:
    payload = publish_command(COMMAND._replace(slot_sequence=7, time_zone="Europe/Berlin"), 5).payload
    command = PublishCommand.FromString(payload)
    assert (command.slot_sequence, command.time_zone) == (7, "Europe/Berlin")


def test_a_message_id_names_the_slot_its_revision_the_target_and_the_copy() -> None:
    others = [
        COMMAND,
        COMMAND._replace(slot_id="s2"),
        COMMAND._replace(revision=3),
        COMMAND._replace(emission=4),
        COMMAND._replace(channel="x"),
        COMMAND._replace(destination="43"),
        COMMAND._replace(channel="facebook4", destination="2"),
    ]
    ids = [publish_command(each, 5).message_id for each in others]
    assert len(set(ids)) == len(ids)
    assert publish_command(COMMAND._replace(traceparent=""), 5).message_id == ids[0]
    strange = publish_command(COMMAND._replace(destination="a\r\nb"), 5).message_id
    assert strange.isprintable()


def test_the_announcement_of_a_slot_is_what_it_was() -> None:
    announced = slot_scheduled(replace(SLOT, time_zone="UTC"))
    expected = SlotScheduled.FromString(SLOT_SCHEDULED)
    expected.not_after.FromDatetime(NOW + timedelta(days=1))
    expected.content_revision = SLOT.content_revision
    assert announced.message == expected
    assert (announced.subject, announced.aggregate_id) == ("events.queue.acme.slot", "s1")
    assert announced.traceparent == "00-0123-01"


def test_the_announcement_of_a_slot_says_which_is_the_newer() -> None:
    announced = slot_scheduled(replace(SLOT, sequence=7)).message
    assert isinstance(announced, SlotScheduled)
    assert announced.slot_sequence == 7


def test_a_slot_says_what_its_weekly_slot_asked_for() -> None:
    announced = slot_scheduled(replace(SLOT, nominal=datetime(2026, 3, 29, 2, 30))).message
    assert isinstance(announced, SlotScheduled)
    assert announced.nominal_local_time == "2026-03-29T02:30"


def test_a_moved_slot_is_announced_as_a_whole() -> None:
    announced = slot_moved(
        MovedSlot(
            organization_id="acme",
            id="s1",
            revision=3,
            draft_id="d1",
            social_account_id="page",
            sequence=7,
            schedule_time=NOW,
            previous_schedule_time=NOW - timedelta(hours=1),
            not_after=NOW + timedelta(days=1),
            time_zone="Europe/Berlin",
            nominal=datetime(2026, 3, 2, 10, 0),
            traceparent="00-0123-01",
            targets=(("facebook", "42"), ("x", "")),
        )
    )
    assert (announced.subject, announced.aggregate_id) == ("events.queue.acme.slot", "s1")
    assert (announced.organization_id, announced.traceparent) == ("acme", "00-0123-01")
    expected = SlotMoved.FromString(SLOT_MOVED)
    expected.slot_sequence = 7
    expected.not_after.FromDatetime(NOW + timedelta(days=1))
    assert announced.message == expected


ASKED = FindSlotTimesRequest(
    organization_id="acme",
    social_account_id="page",
    after=timestamp(NOW),
    before=timestamp(NOW + timedelta(days=9)),
    count=2,
)
FOUND = FindSlotTimesResponse(
    slot_times=[
        SlotTime(
            time=timestamp(NOW + timedelta(days=day)),
            local_date=f"2026-03-{day + 2:02}",
            local_time="03:30",
            shifted=day == 1,
            nominal_local_time=f"2026-03-{day + 2:02}T02:30",
        )
        for day in range(3)
    ],
    time_zone="Europe/Berlin",
    schedule_version=7,
    max_posts_per_day=3,
    enabled=True,
    tzdata_version="2026b",
)


def test_slot_times_are_read_with_what_they_follow() -> None:
    read = slot_times(ASKED, FOUND)
    assert read.times == tuple(NOW + timedelta(days=day) for day in range(3))
    assert read.nominals == tuple(datetime(2026, 3, day, 2, 30) for day in (2, 3, 4))
    assert (read.after, read.until, read.last) == (NOW, read.times[-1] + timedelta(microseconds=1), False)
    assert (read.schedule_version, read.tzdata_version) == (7, "2026b")
    assert read.schedule == AnnouncedSchedule(
        organization_id="acme",
        social_account_id="page",
        version=7,
        time_zone="Europe/Berlin",
        max_posts_per_day=3,
        enabled=True,
        tzdata_version="2026b",
    )


def test_slot_times_of_the_release_before_are_what_the_wall_shows_unless_they_were_shifted() -> None:
    older = FindSlotTimesResponse(schedule_version=7, time_zone="Europe/Berlin")
    for each in FOUND.slot_times:
        older.slot_times.add(
            time=each.time, local_date=each.local_date, local_time=each.local_time, shifted=each.shifted
        )
    older.slot_times.add(time=timestamp(NOW + timedelta(days=4)))
    read = slot_times(ASKED, older)
    assert read.nominals == (datetime(2026, 3, 2, 3, 30), None, datetime(2026, 3, 4, 3, 30), None)
    assert (read.schedule, read.tzdata_version) == (None, "")


def test_the_last_page_ends_at_the_horizon() -> None:
    read = slot_times(ASKED, FindSlotTimesResponse(slot_times=FOUND.slot_times[:1]))
    assert (read.until, read.last) == (NOW + timedelta(days=9), True)


def test_a_schedule_in_a_zone_of_a_newer_release_is_not_followed_before_its_announcement() -> None:
    newer = FindSlotTimesResponse()
    newer.CopyFrom(FOUND)
    newer.time_zone = "Mars/Olympus"
    assert slot_times(ASKED, newer).schedule is None


def test_a_deleted_schedule_leaves_nothing_but_its_version() -> None:
    schedule = AccountSchedule(
        social_account_id="page",
        time_zone="Mars/Olympus",
        max_posts_per_day=3,
        enabled=True,
        version=8,
        tzdata_version="2026b",
    )
    told = changed_schedule(AccountScheduleChanged(organization_id="acme", account_schedule=schedule, deleted=True))
    assert told == AnnouncedSchedule(
        organization_id="acme",
        social_account_id="page",
        version=8,
        time_zone="",
        max_posts_per_day=0,
        enabled=False,
        tzdata_version="2026b",
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
        state=JobState.READY, state_reason="", next_action_time=None
    )
    assert second == first._replace(slot_id="s2")


@pytest.mark.parametrize("state", JobState)
def test_every_job_state_is_understood(state: JobState) -> None:
    changed = PostJobChanged.FromString(POST_JOB_CHANGED)
    changed.post_job.state = f"POST_JOB_STATE_{state}"  # type: ignore[assignment]
    assert job_report(PostJobChanged.FromString(changed.SerializeToString())).state is state


def test_a_schedule_in_a_zone_that_is_not_known_is_refused() -> None:
    changed = AccountScheduleChanged.FromString(SCHEDULE_CHANGED)
    changed.account_schedule.time_zone = "Mars/Olympus"
    with pytest.raises(UnknownZone):
        changed_schedule(changed)


def test_an_event_that_lacks_what_it_is_about_is_refused() -> None:
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
