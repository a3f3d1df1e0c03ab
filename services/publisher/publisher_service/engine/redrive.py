"""Returns dead letters of the intake to the stream of publish commands."""

from publisher_service.wire.commands import read_command
from servicekit.bus.publisher import Outgoing, PipelinedPublisher
from servicekit.faults import Unavailable
from servicekit.pg.dead_letters import DeadLetter, DeadLetters


class CommandRedriver:
    def __init__(self, publisher: PipelinedPublisher, dead_letters: DeadLetters) -> None:
        self._publisher = publisher
        self._dead_letters = dead_letters

    async def redrive(self, letter: DeadLetter) -> None:
        """Publishes the command again. Raises for one that still cannot be read: the intake would only park it."""
        read_command(letter.payload)
        # The id stays the same until `redriven` is committed: after a crash in between the stream drops the repeat.
        message = Outgoing(letter.subject, letter.payload, f"redrive-{letter.id}-{letter.redrives}")
        (answer,) = await self._publisher.publish([message])
        if answer is None:
            raise Unavailable("STREAM_UNAVAILABLE", "the stream of publish commands did not take the command")
        await self._dead_letters.redriven(letter.id)
