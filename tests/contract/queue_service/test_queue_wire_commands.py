"""Publish commands on the wire."""

from datetime import UTC, datetime

from postflow.queue.v1.publish_command_pb2 import PublishCommand
from queue_service.domain.command import Command
from queue_service.wire.commands import publish_command

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)
# As the first release encoded it: messages may wait in a stream for a month.
PUBLISH_COMMAND = bytes.fromhex(
    "0a0461636d6512027331180220032a02643132140a0470616765120866616365626f6f6b1a0234323a0b0890a395cd06108094ef3a420b08"
    "90a395cd06108094ef3a480450055a0a30302d303132332d3031"
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


def test_a_command_is_encoded_as_before() -> None:
    outgoing = publish_command(COMMAND, 5)
    assert PublishCommand.FromString(outgoing.payload) == PublishCommand.FromString(PUBLISH_COMMAND)
    assert outgoing.subject == "publish.52.acme"


def test_a_command_has_the_slots_sequence_and_time_zone() -> None:
    payload = publish_command(COMMAND._replace(slot_sequence=7, time_zone="Europe/Berlin"), 5).payload
    command = PublishCommand.FromString(payload)
    assert (command.slot_sequence, command.time_zone) == (7, "Europe/Berlin")
