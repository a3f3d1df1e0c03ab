"""Protobuf <-> domain, both ways: the only place where both vocabularies meet."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b

from google.protobuf.timestamp_pb2 import Timestamp

from civil.zones import find_zone, zone_names
from postflow.drafts.v1 import draft_pb2, drafts_events_pb2
from postflow.publisher.v1 import post_job_pb2, publisher_events_pb2
from postflow.queue.v1 import publish_command_pb2, queue_events_pb2, queue_service_pb2, queue_slot_pb2
from postflow.schedule.v1 import account_schedule_pb2, schedule_events_pb2, schedule_service_pb2
from postflow.target.v1 import target_pb2
from queue_service.domain.account import Connection, ToldSchedule
from queue_service.domain.command import Command
from queue_service.domain.draft import Draft, SavedDraft, Target
from queue_service.domain.job import JobState
from queue_service.domain.listing import Position
from queue_service.domain.relocation import MovedSlot
from queue_service.domain.settlement import JobReport
from queue_service.domain.slot import QueueSlot, SlotState, SlotTarget
from queue_service.domain.slot_times import SlotTimes
from servicekit.bus.publisher import Outgoing
from servicekit.faults import InvalidRequest
from servicekit.pg.outbox import Announcement
from topology import events_subject, publish_subject

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_SLOT_STATES = {
    number: SlotState(name.removeprefix("QUEUE_SLOT_STATE_"))
    for name, number in queue_slot_pb2.QueueSlotState.items()
    if number != queue_slot_pb2.QUEUE_SLOT_STATE_UNSPECIFIED
}
_JOB_STATES = {
    number: JobState(name.removeprefix("POST_JOB_STATE_"))
    for name, number in post_job_pb2.PostJobState.items()
    if number != post_job_pb2.POST_JOB_STATE_UNSPECIFIED
}


def moment(timestamp: Timestamp) -> datetime:
    # Several times cheaper than ToDatetime(), and PostgreSQL keeps microseconds, too.
    return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)


def timestamp(moment: datetime | None) -> Timestamp | None:
    if moment is None:
        return None
    seconds, micros = divmod((moment - _EPOCH) // _MICROSECOND, 1_000_000)
    return Timestamp(seconds=seconds, nanos=micros * 1000)


# requests and answers


def position(cursor: tuple[str | int, ...] | None) -> Position:
    """Where a page begins, as `cursor` wrote it into a token."""
    if cursor is None:
        return Position()
    micros, slot_id = cursor
    return Position(schedule_time=_EPOCH + int(micros) * _MICROSECOND, slot_id=str(slot_id))


def cursor(position: Position) -> tuple[int, str]:
    return (position.schedule_time - _EPOCH) // _MICROSECOND, position.slot_id


def states(numbers: Iterable[int]) -> tuple[SlotState, ...]:
    """Without repetitions."""
    return tuple(dict.fromkeys(_SLOT_STATES[number] for number in numbers))


def encoded_slots(slots: Sequence[QueueSlot]) -> bytes:
    """As the request ledger keeps an answer: AddToQueueResponse and ScheduleAtResponse have the same fields."""
    return queue_service_pb2.AddToQueueResponse(queue_slots=map(queue_slot, slots)).SerializeToString()


def queue_slot(slot: QueueSlot) -> queue_slot_pb2.QueueSlot:
    return queue_slot_pb2.QueueSlot(
        id=slot.id,
        social_account_id=slot.social_account_id,
        draft_id=slot.draft_id,
        schedule_time=timestamp(slot.schedule_time),
        time_zone=slot.time_zone,
        local_date=slot.local_date.isoformat() if slot.local_date else "",
        local_time=slot.local_time.isoformat("minutes") if slot.local_time else "",
        state=f"QUEUE_SLOT_STATE_{slot.state}",
        origin=f"QUEUE_SLOT_ORIGIN_{slot.origin}",
        revision=slot.revision,
        targets=[_slot_target(slot, target) for target in slot.targets],
        not_after=timestamp(slot.not_after),
        expected_time=timestamp(slot.expected_time),
        publish_time=timestamp(slot.publish_time),
        create_time=timestamp(slot.create_time),
        update_time=timestamp(slot.update_time),
        state_reason=slot.state_reason,
    )


def _slot_target(slot: QueueSlot, target: SlotTarget) -> queue_slot_pb2.QueueSlotTarget:
    return queue_slot_pb2.QueueSlotTarget(
        target=_target(slot, target),
        post_job_id=target.job_id,
        post_job_state=target.job_state or "",
        external_url=target.external_url,
        error_message=target.error_message,
        state_reason=target.state_reason,
    )


def _target(slot: QueueSlot, target: SlotTarget) -> target_pb2.Target:
    return target_pb2.Target(
        social_account_id=slot.social_account_id, channel=target.channel, destination=target.destination
    )


# what other services say


def draft(organization_id: str, message: draft_pb2.Draft) -> Draft:
    return Draft(
        organization_id=organization_id, id=message.id, revision=message.revision, targets=_targets(message.targets)
    )


def slot_times(
    asked: schedule_service_pb2.FindSlotTimesRequest, found: schedule_service_pb2.FindSlotTimesResponse
) -> SlotTimes:
    """The answer to a question for so many times from `after` until `before`."""
    times = tuple(moment(each.time) for each in found.slot_times)
    cut_off = len(times) >= asked.count
    return SlotTimes(
        schedule_version=found.schedule_version,
        after=moment(asked.after),
        until=times[-1] + _MICROSECOND if cut_off else moment(asked.before),
        times=times,
        nominals=tuple(map(_nominal, found.slot_times)),
        last=not cut_off,
        schedule=_told(asked, found),
    )


def _nominal(found: account_schedule_pb2.SlotTime) -> datetime | None:
    """The release before this one did not say; what it did say is as good unless the time was shifted."""
    if found.nominal_local_time:
        return datetime.fromisoformat(found.nominal_local_time)
    if found.shifted or not found.local_date:
        return None
    return datetime.fromisoformat(f"{found.local_date}T{found.local_time}")


def _told(
    asked: schedule_service_pb2.FindSlotTimesRequest, found: schedule_service_pb2.FindSlotTimesResponse
) -> ToldSchedule | None:
    """None when Schedule is of the release before, which did not say, or of one that knows more zones."""
    if not found.tzdata_version or found.time_zone not in zone_names():
        return None
    return ToldSchedule(
        organization_id=asked.organization_id,
        social_account_id=asked.social_account_id,
        version=found.schedule_version,
        time_zone=found.time_zone,
        max_posts_per_day=found.max_posts_per_day,
        enabled=found.enabled,
        tzdata_version=found.tzdata_version,
    )


def saved_draft(message: drafts_events_pb2.DraftSaved) -> SavedDraft:
    return SavedDraft(
        draft=Draft(
            organization_id=_known(message.organization_id, "organization_id"),
            id=_known(message.draft_id, "draft_id"),
            revision=message.revision,
            targets=_targets(message.targets),
        ),
        version=message.version,
        approved=message.approved,
    )


def changed_schedule(message: schedule_events_pb2.AccountScheduleChanged) -> ToldSchedule:
    schedule = message.account_schedule
    gone = message.deleted
    return ToldSchedule(
        organization_id=_known(message.organization_id, "organization_id"),
        social_account_id=_known(schedule.social_account_id, "social_account_id"),
        version=schedule.version,
        # One that is not known here stops at this event, not at each of the account's posts.
        time_zone="" if gone else find_zone(schedule.time_zone).name,
        max_posts_per_day=0 if gone else schedule.max_posts_per_day,
        enabled=schedule.enabled and not gone,
        tzdata_version=schedule.tzdata_version,
    )


def job_report(message: publisher_events_pb2.PostJobChanged) -> JobReport:
    """What cannot be understood is refused: the consumer parks it, and a newer release can take it up again."""
    job = message.post_job
    state = _JOB_STATES.get(job.state)
    if state is None:
        raise InvalidRequest("MALFORMED_EVENT", f"a PostJobChanged with the unknown state {job.state}")
    target = job.target
    return JobReport(
        organization_id=_known(message.organization_id, "organization_id"),
        slot_id=job.slot_id,
        slot_revision=job.slot_revision,
        draft_id=_known(job.draft_id, "draft_id"),
        social_account_id=_known(target.social_account_id, "social_account_id"),
        channel=target.channel,
        destination=target.destination,
        job_id=_known(job.id, "id"),
        state=state,
        version=job.version,
        external_url=job.external_url,
        error_message=job.error_message,
        state_reason=job.state_reason,
        next_action_time=moment(job.next_action_time) if job.HasField("next_action_time") else None,
        publish_time=moment(job.publish_time) if job.HasField("publish_time") else None,
    )


def connection(
    message: publisher_events_pb2.SocialAccountConnected | publisher_events_pb2.SocialAccountDisconnected,
) -> Connection:
    return Connection(
        organization_id=_known(message.organization_id, "organization_id"),
        social_account_id=_known(message.social_account.id, "id"),
        version=message.social_account.version,
        is_connected=isinstance(message, publisher_events_pb2.SocialAccountConnected),
    )


def accepted_commands(message: publisher_events_pb2.CommandsAccepted) -> list[JobReport]:
    """A report for each command: its job is READY."""
    organization_id = _known(message.organization_id, "organization_id")
    return [
        JobReport(
            organization_id=organization_id,
            slot_id=_known(each.slot_id, "slot_id"),
            slot_revision=each.slot_revision,
            draft_id=_known(each.draft_id, "draft_id"),
            social_account_id=_known(each.target.social_account_id, "social_account_id"),
            channel=each.target.channel,
            destination=each.target.destination,
            job_id=_known(each.post_job_id, "post_job_id"),
            state=JobState.READY,
            version=each.version,
            external_url="",
            error_message="",
            state_reason="",
            next_action_time=None,
            publish_time=None,
        )
        for each in message.commands
    ]


def _targets(messages: Iterable[target_pb2.Target]) -> tuple[Target, ...]:
    return tuple(
        Target(social_account_id=each.social_account_id, channel=each.channel, destination=each.destination)
        for each in messages
    )


def _known(value: str, field: str) -> str:
    if not value:
        raise InvalidRequest("MALFORMED_EVENT", f"an event without its {field}")
    return value


# what Queue says


def slot_scheduled(slot: QueueSlot) -> Announcement:
    return Announcement(
        subject=events_subject("queue", slot.organization_id, "slot"),
        organization_id=slot.organization_id,
        aggregate_id=slot.id,
        message=queue_events_pb2.SlotScheduled(
            organization_id=slot.organization_id,
            slot_id=slot.id,
            revision=slot.revision,
            draft_id=slot.draft_id,
            social_account_id=slot.social_account_id,
            targets=[_target(slot, target) for target in slot.targets],
            schedule_time=timestamp(slot.schedule_time),
            time_zone=slot.time_zone,
            nominal_local_time=_wall(slot.nominal),
            slot_sequence=slot.sequence,
            not_after=timestamp(slot.not_after),
            content_revision=slot.content_revision,
        ),
        traceparent=slot.traceparent,
    )


def slot_moved(slot: MovedSlot) -> Announcement:
    """By the law of its zone: nothing else moves a slot."""
    return Announcement(
        subject=events_subject("queue", slot.organization_id, "slot"),
        organization_id=slot.organization_id,
        aggregate_id=slot.id,
        message=queue_events_pb2.SlotMoved(
            organization_id=slot.organization_id,
            slot_id=slot.id,
            revision=slot.revision,
            draft_id=slot.draft_id,
            social_account_id=slot.social_account_id,
            targets=[
                target_pb2.Target(social_account_id=slot.social_account_id, channel=channel, destination=destination)
                for channel, destination in slot.targets
            ],
            schedule_time=timestamp(slot.schedule_time),
            previous_schedule_time=timestamp(slot.previous_schedule_time),
            time_zone=slot.time_zone,
            nominal_local_time=_wall(slot.nominal),
            reason=queue_events_pb2.SLOT_MOVE_REASON_ZONE_DATA,
            slot_sequence=slot.sequence,
            not_after=timestamp(slot.not_after),
        ),
        traceparent=slot.traceparent,
    )


def _wall(nominal: datetime | None) -> str:
    return nominal.isoformat(timespec="minutes") if nominal else ""


def publish_command(command: Command, max_attempts: int) -> Outgoing:
    """The message id names this copy: the stream keeps one of two such, and never takes a later copy for this one."""
    message = publish_command_pb2.PublishCommand(
        organization_id=command.organization_id,
        slot_id=command.slot_id,
        slot_revision=command.revision,
        emission=command.emission,
        draft_id=command.draft_id,
        target=target_pb2.Target(
            social_account_id=command.social_account_id, channel=command.channel, destination=command.destination
        ),
        schedule_time=timestamp(command.schedule_time),
        not_after=timestamp(command.not_after),
        content_revision=command.content_revision,
        max_attempts=max_attempts,
        traceparent=command.traceparent,
        slot_sequence=command.slot_sequence,
        time_zone=command.time_zone,
    )
    return Outgoing(
        subject=publish_subject(command.organization_id, command.social_account_id),
        payload=message.SerializeToString(),
        message_id=f"{command.slot_id}.{command.revision}."
        f"{_digest(command.channel, command.destination)}.{command.emission}",
    )


@lru_cache(maxsize=4096)
def _digest(channel: str, destination: str) -> str:
    """A destination may hold anything, a header may not."""
    return blake2b(f"{channel}\0{destination}".encode(), digest_size=8).hexdigest()
