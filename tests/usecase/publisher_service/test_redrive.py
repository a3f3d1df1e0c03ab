"""A publish command in the dead letters goes back to its stream once it can be read."""

from publisher_service.engine.redrive import CommandRedriver
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.ids import Uuid7Source
from servicekit.ops import Operations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.dead_letters import DeadLetters, DeadLetterState
from tests.usecase.publisher_service.rig import Rig, Start


def operations(rig: Rig, letters: DeadLetters) -> Operations:
    return Operations(
        service="publisher",
        migrations="publisher_service.adapters.postgres.migrations",
        database=rig.database,
        clock=DatabaseClock(),
        system=rig.clock,
        dead_letters=letters,
        consumers=[],
        redrivers={"publisher": CommandRedriver(PipelinedPublisher(rig.client), letters)},
    )


async def test_a_redriven_command_is_sent(start: Start) -> None:
    async with start() as rig:
        letters = DeadLetters(rig.database, DatabaseClock(), Uuid7Source())
        await rig.connect()
        await rig.save_draft("d1")
        due = rig.clock.now()
        slot = await rig.schedule("d1", due)
        await rig.in_state("SCHEDULED", "d1")
        command = rig.command_message("d1", slot, due)
        await letters.add(
            consumer="publisher", subject="publish.0.acme", reason="r", payload=command.SerializeToString()
        )
        (letter,) = await letters.list()
        (result,) = await operations(rig, letters).redrive([letter.id], "")
        assert result.failure == ""
        await rig.in_state("PUBLISHED", "d1")
        assert [each.state for each in await letters.list()] == [DeadLetterState.REDRIVEN]


async def test_a_command_that_is_still_unreadable_stays_parked(start: Start) -> None:
    async with start() as rig:
        letters = DeadLetters(rig.database, DatabaseClock(), Uuid7Source())
        await letters.add(consumer="publisher", subject="publish.0.acme", reason="r", payload=b"\xff")
        await letters.add(consumer="publisher", subject="publish.0.acme", reason="r", payload=b"")
        found = await letters.list()
        results = await operations(rig, letters).redrive([letter.id for letter in found], "")
        assert [result.failure for result in results] == [
            "DecodeError while applying",
            "MALFORMED_EVENT while applying",
        ]
        assert [letter.state for letter in await letters.list()] == [DeadLetterState.OPEN, DeadLetterState.OPEN]
