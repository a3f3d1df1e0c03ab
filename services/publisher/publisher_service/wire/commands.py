"""Publish commands, and the event that answers for those whose posts wait in line."""

from collections.abc import Sequence

from postflow.publisher.v1 import publisher_events_pb2
from postflow.queue.v1 import publish_command_pb2
from publisher_service.domain.claim import Command
from publisher_service.domain.plan import local_month
from publisher_service.wire.targets import target_from, target_message
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.pg.outbox import Announcement
from servicekit.timestamps import moment
from topology import events_subject


def read_command(payload: bytes) -> Command:
    """Decodes a command. Raises DecodeError or InvalidRequest."""
    return command_from(publish_command_pb2.PublishCommand.FromString(payload))


def command_from(message: publish_command_pb2.PublishCommand) -> Command:
    """Translates a command. Raises InvalidRequest if it lacks something, or names what PostgreSQL cannot hold."""
    target = target_from(message.target)
    named = (message.organization_id, message.slot_id, message.draft_id, target.social_account_id, target.channel)
    if not all(named) or not message.HasField("schedule_time") or not message.HasField("not_after"):
        raise UnreadableMessage("a publish command lacks its organization, slot, draft, target or times")
    if "\0" in "".join((*named, target.destination, message.traceparent)):
        raise UnreadableMessage("a publish command names what no database can hold")
    time = moment(message.schedule_time)
    return Command(
        organization_id=message.organization_id,
        draft_id=message.draft_id,
        target=target,
        slot_sequence=message.slot_sequence,
        slot_id=message.slot_id,
        slot_revision=message.slot_revision,
        emission=message.emission,
        schedule_time=time,
        not_after=moment(message.not_after),
        content_revision=message.content_revision,
        max_attempts=max(message.max_attempts, 1),
        traceparent=message.traceparent,
        target_month=local_month(time, message.time_zone) if message.time_zone else "",
        known_job_version=message.known_job_version,
    )


def commands_accepted(organization_id: str, accepted: Sequence[tuple[Command, int]]) -> Announcement:
    """Announces commands whose jobs wait in line, each with the version of its job."""
    commands = [
        publisher_events_pb2.AcceptedCommand(
            slot_id=command.slot_id,
            slot_revision=command.slot_revision,
            draft_id=command.draft_id,
            target=target_message(command.target),
            post_job_id=command.post_job_id,
            version=version,
        )
        for command, version in accepted
    ]
    return Announcement(
        subject=events_subject("publisher", "command"),
        organization_id=organization_id,
        aggregate_id=commands[0].post_job_id,
        message=publisher_events_pb2.CommandsAccepted(organization_id=organization_id, commands=commands),
    )
