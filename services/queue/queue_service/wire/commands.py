"""Publish commands, as the PUBLISH stream carries them."""

from postflow.queue.v1 import publish_command_pb2
from queue_service.domain.command import Command
from servicekit.bus.publisher import Outgoing
from servicekit.timestamps import put
from topology import publish_subject


def publish_command(command: Command, max_attempts: int) -> Outgoing:
    """Encodes a command. It has no message id: Publisher recognises a copy, whether it was repeated or sent twice."""
    message = publish_command_pb2.PublishCommand(
        organization_id=command.organization_id,
        slot_id=command.slot_id,
        slot_revision=command.revision,
        emission=command.emission,
        draft_id=command.draft_id,
        content_revision=command.content_revision,
        max_attempts=max_attempts,
        traceparent=command.traceparent,
        slot_sequence=command.slot_sequence,
        time_zone=command.time_zone,
        known_job_version=command.job_version,
        known_job_state=command.job_state,
    )
    # In place: a message that is copied into a field costs twice as much.
    target = message.target
    target.social_account_id, target.channel = command.social_account_id, command.channel
    target.destination = command.destination
    put(message.schedule_time, command.schedule_time)
    put(message.not_after, command.not_after)
    return Outgoing(
        subject=publish_subject(command.organization_id, command.social_account_id),
        payload=message.SerializeToString(),
    )
