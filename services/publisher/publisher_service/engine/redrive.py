"""Gives parked publish commands back to their stream."""

from postflow.queue.v1 import publish_command_pb2
from publisher_service.wire import command_from
from servicekit.bus.publisher import Outgoing, PipelinedPublisher
from servicekit.faults import Unavailable
from servicekit.pg.dead_letters import DeadLetter, DeadLetters


class CommandRedriver:
    def __init__(self, publisher: PipelinedPublisher, dead_letters: DeadLetters) -> None:
        self._publisher = publisher
        self._dead_letters = dead_letters

    async def redrive(self, letter: DeadLetter) -> None:
        """A command that still cannot be read stays where it is, else the intake would park it once more."""
        command_from(publish_command_pb2.PublishCommand.FromString(letter.payload))
        # The same id while nobody has noted its success: a repeat after a crash in between is a duplicate.
        message = Outgoing(letter.subject, letter.payload, f"redrive-{letter.id}-{letter.redrives}")
        (answer,) = await self._publisher.publish([message])
        if answer is None:
            raise Unavailable("STREAM_UNAVAILABLE", "the stream of publish commands did not take the command")
        await self._dead_letters.redriven(letter.id)
