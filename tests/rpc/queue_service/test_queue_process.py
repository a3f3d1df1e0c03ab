"""A slot's way through the composed Queue process: events, announcements and commands."""

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import text

from devstack.servers.nats import EmbeddedNats
from postflow.bus.v1.bus_pb2 import Envelope
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_PUBLISHED, POST_JOB_STATE_READY
from postflow.publisher.v1.publisher_events_pb2 import AcceptedCommand, CommandsAccepted, PostJobChanged
from postflow.queue.v1.queue_events_pb2 import SlotMoved, SlotRefused, SlotScheduled
from postflow.queue.v1.queue_service_pb2 import AddToQueueRequest, ListQueueSlotsRequest, ScheduleAtRequest
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_ORIGIN_DRAFT,
    QUEUE_SLOT_STATE_DISPATCHED,
    QUEUE_SLOT_STATE_PUBLISHED,
    QueueSlot,
)
from postflow.target.v1.target_pb2 import Target
from queue_service.domain.command import ANSWERED_DELAY
from servicekit.clock import SystemClock
from servicekit.pg.database import Database
from testkit.eventually import eventually
from topology import EVENTS, PUBLISH, publish_subject

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig


async def schedule(rig: "Rig", draft_id: str, ahead: timedelta, *accounts: str) -> QueueSlot:
    request = ScheduleAtRequest(organization_id="acme", draft_id=draft_id, social_account_ids=accounts)
    request.schedule_time.FromDatetime(SystemClock().now() + ahead)
    slots: list[QueueSlot] = (await rig.stub.ScheduleAt(request)).queue_slots
    return slots[0]


async def only_slot(rig: "Rig") -> QueueSlot:
    listed = await rig.stub.ListQueueSlots(ListQueueSlotsRequest(organization_id="acme"))
    slots: list[QueueSlot] = listed.queue_slots
    return slots[0]


async def test_a_slot_is_handed_over_and_settled(rig: "Rig") -> None:
    rig.draft("d1", ("page", "facebook", "42"))
    slot = await schedule(rig, "d1", timedelta(seconds=20))

    [command] = await rig.commands(1)
    assert (command.organization_id, command.slot_id, command.slot_revision, command.emission) == (
        "acme",
        slot.id,
        1,
        1,
    )
    assert command.target == Target(social_account_id="page", channel="facebook", destination="42")
    assert command.schedule_time == slot.schedule_time
    assert command.not_after == slot.not_after
    assert (command.content_revision, command.max_attempts) == (1, 5)
    [(subject, _)] = await rig.messages(PUBLISH.name)
    assert subject == publish_subject("acme", "page")
    assert (await only_slot(rig)).state == QUEUE_SLOT_STATE_DISPATCHED

    await rig.report(command, POST_JOB_STATE_PUBLISHED, 3)

    async def settled() -> bool:
        return (await only_slot(rig)).state == QUEUE_SLOT_STATE_PUBLISHED

    await eventually(settled)
    [target] = (await only_slot(rig)).targets
    assert (target.post_job_id, target.post_job_state) == ("job-d1", "PUBLISHED")


async def test_a_draft_gets_the_time_that_it_asks_for(rig: "Rig") -> None:
    saved = DraftSaved(organization_id="acme", draft_id="d1", version=1, revision=1, approved=True)
    saved.targets.add(social_account_id="page", channel="facebook")
    saved.requested_time.FromDatetime(SystemClock().now() + timedelta(hours=1))
    await rig.announce("drafts", saved, saved.draft_id)

    async def booked() -> bool:
        listed = await rig.stub.ListQueueSlots(ListQueueSlotsRequest(organization_id="acme"))
        return bool(listed.queue_slots)

    await eventually(booked)
    slot = await only_slot(rig)
    assert (slot.origin, slot.schedule_time) == (QUEUE_SLOT_ORIGIN_DRAFT, saved.requested_time)
    saved.version, saved.draft_id = 1, "d2"
    await rig.announce("drafts", saved, saved.draft_id)

    async def refusals() -> list[SlotRefused]:
        return [
            SlotRefused.FromString(event.payload)
            for subject, payload in await rig.messages(EVENTS.name)
            if subject == "events.queue.draft"
            for event in Envelope.FromString(payload).events
        ]

    [refused] = await eventually(refusals)
    assert (refused.draft_id, refused.reason, refused.draft_version) == ("d2", "SLOT_TAKEN", 1)


async def test_a_new_slot_is_announced(rig: "Rig") -> None:
    rig.draft("d1", ("page", "facebook", ""))
    slot = await schedule(rig, "d1", timedelta(hours=1))

    async def announced() -> list[SlotScheduled]:
        return [
            SlotScheduled.FromString(event.payload)
            for subject, payload in await rig.messages(EVENTS.name)
            if subject == "events.queue.slot"
            for event in Envelope.FromString(payload).events
        ]

    [event] = await eventually(announced)
    assert (event.slot_id, event.revision, event.draft_id) == (slot.id, 1, "d1")
    assert event.schedule_time == slot.schedule_time


async def test_a_slot_moves_with_new_time_zone_data(rig: "Rig") -> None:
    noon = SystemClock().now().replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=7)
    await rig.put_schedule("page", noon, tzdata_version="2020a")
    await rig.put_schedule("waits", noon, tzdata_version="2020a")
    rig.draft("d1", ("page", "facebook", "42"), ("waits", "x", ""))
    [page, _] = (await rig.stub.AddToQueue(AddToQueueRequest(organization_id="acme", draft_id="d1"))).queue_slots
    database = Database(rig.database_url, application="test", pool_size=1)
    async with database.transaction() as tx:
        outdate = "update slot set schedule_time = schedule_time - interval '1 hour'"
        await tx.connection.execute(text(outdate))
    await database.dispose()

    # Announced with a release that this process does not have yet, and with the one that it has.
    await rig.put_schedule("waits", noon, version=2, tzdata_version="2999a")
    await rig.put_schedule("page", noon, version=2)

    async def moved() -> list[SlotMoved]:
        return [
            SlotMoved.FromString(event.payload)
            for subject, payload in await rig.messages(EVENTS.name)
            if subject == "events.queue.slot"
            for event in Envelope.FromString(payload).events
            if event.type == "postflow.queue.v1.SlotMoved"
        ]

    [event] = await eventually(moved)
    assert (event.slot_id, event.revision, event.draft_id) == (page.id, 2, "d1")
    assert event.schedule_time.ToDatetime(UTC) == noon
    assert event.previous_schedule_time.ToDatetime(UTC) == noon - timedelta(hours=1)
    assert event.nominal_local_time == f"{noon:%Y-%m-%dT%H:%M}"
    listed = (await rig.stub.ListQueueSlots(ListQueueSlotsRequest(organization_id="acme"))).queue_slots
    assert [(slot.social_account_id, slot.schedule_time.ToDatetime(UTC), slot.revision) for slot in listed] == [
        ("waits", noon - timedelta(hours=1), 1),
        ("page", noon, 2),
    ]


async def test_a_lost_command_is_repeated_and_one_that_waits_is_not(rig: "Rig") -> None:
    for draft in ("d1", "d2"):
        rig.draft(draft, (f"page-{draft}", "facebook", ""))
        await schedule(rig, draft, timedelta(seconds=-58))
    lost, held = await rig.commands(2)
    await rig.nats.jetstream().delete_msg(PUBLISH.name, 1)
    still, again = await rig.commands(2)
    assert still == held
    assert (lost.emission, again.emission) == (1, 2)
    lost.emission = again.emission = 0
    assert lost == again
    await rig.report(again, POST_JOB_STATE_READY, 2)


async def test_commands_lost_by_a_wiped_server_are_back_before_they_are_due(
    rig: "Rig", fresh_nats: EmbeddedNats
) -> None:
    for index in range(20):
        rig.draft(f"d{index}", (f"page-{index}", "facebook", ""))
        await schedule(rig, f"d{index}", timedelta(seconds=29))
    held = await rig.commands(20)
    await fresh_nats.kill()
    await fresh_nats.wipe()
    await fresh_nats.start()
    again = await rig.commands(20)
    assert SystemClock().now() < min(each.schedule_time.ToDatetime(UTC) for each in held)
    assert {each.slot_id for each in again} == {each.slot_id for each in held}
    assert {each.emission for each in again} == {2}


async def test_one_event_answers_many_commands(rig: "Rig") -> None:
    rig.draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""))
    await schedule(rig, "d1", timedelta(seconds=20))
    commands = await rig.commands(2)
    accepted = [
        AcceptedCommand(
            slot_id=each.slot_id,
            slot_revision=each.slot_revision,
            draft_id=each.draft_id,
            target=each.target,
            post_job_id=f"job-{each.target.channel}",
            version=2,
        )
        for each in commands
    ]
    await rig.announce("publisher", CommandsAccepted(organization_id="acme", commands=accepted), "page")

    async def answered() -> list[str]:
        states = [target.post_job_state for target in (await only_slot(rig)).targets]
        return states if all(states) else []

    assert await eventually(answered) == ["READY", "READY"]
    [row] = await rig.rows("select is_answered, next_emit_at - update_time as pause from slot")
    assert (row.is_answered, row.pause) == (True, ANSWERED_DELAY)


async def test_drafts_is_not_asked_about_announced_accounts(rig: "Rig") -> None:
    target = Target(social_account_id="page", channel="facebook")
    await rig.announce(
        "drafts", DraftSaved(organization_id="acme", draft_id="d1", version=1, revision=7, targets=[target]), "d1"
    )
    database = Database(rig.database_url, application="test", pool_size=1)
    async with database.read() as connection:

        async def known() -> bool:
            return bool((await connection.execute(text("select 1 from draft"))).all())

        await eventually(known)
    await database.dispose()
    slot = await schedule(rig, "d1", timedelta(seconds=5), "page")
    assert slot.schedule_time.ToDatetime(UTC) > SystemClock().now()
    [command] = await rig.commands(1)
    assert command.content_revision == 7


async def test_an_unreadable_event_is_parked_and_the_others_are_applied(rig: "Rig") -> None:
    rig.draft("d1", ("page", "facebook", ""))
    await schedule(rig, "d1", timedelta(seconds=5))
    [command] = await rig.commands(1)
    await rig.publish("publisher", b"\xff\xff no envelope")
    strange = PostJobChanged(organization_id="acme")
    strange.post_job.id, strange.post_job.draft_id, strange.post_job.version = "j", "d", 1
    strange.post_job.target.social_account_id = "page"
    strange.post_job.state = 99  # type: ignore[assignment]
    await rig.announce("publisher", strange, "j")
    await rig.report(command, POST_JOB_STATE_PUBLISHED, 3)

    async def settled() -> bool:
        return (await only_slot(rig)).state == QUEUE_SLOT_STATE_PUBLISHED

    await eventually(settled)
    database = Database(rig.database_url, application="test", pool_size=1)

    async def reasons() -> list[str]:
        async with database.read() as connection:
            return list((await connection.execute(text("select reason from dead_letter order by reason"))).scalars())

    async def parked() -> bool:  # unreadable messages are, in a transaction of their own
        return len(await reasons()) == 2

    await eventually(parked)
    assert await reasons() == ["MALFORMED_EVENT while applying", "the envelope cannot be decoded"]
    await database.dispose()
