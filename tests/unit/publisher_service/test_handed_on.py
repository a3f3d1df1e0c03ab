"""Commands that the sweep has handed on: each once, bounded, and with a place for every organization."""

from dataclasses import replace

from publisher_service.domain.claim import Command
from publisher_service.engine.handed_on import HandedOn
from tests.unit.publisher_service.post_jobs import command


def commands(count: int, *, organization: str = "acme") -> list[Command]:
    return [replace(command(f"slot-{number}"), organization_id=organization) for number in range(count)]


async def test_a_command_is_taken_once_until_it_is_released() -> None:
    handed_on = HandedOn()
    (held,) = handed_on.take(commands(1), since=0)
    assert handed_on.take(commands(1), since=1) == []
    await held.done()
    assert len(handed_on.take(commands(1), since=2)) == 1


async def test_a_full_organization_takes_the_next_command_after_a_release() -> None:
    handed_on = HandedOn()
    first, *others = handed_on.take(commands(2001), since=0)
    assert len(others) == 1999
    await first.done()
    (held,) = handed_on.take([replace(command("more"), organization_id="acme")], since=1)
    assert held.command.slot_id == "more"


def test_two_full_organizations_fill_all_places() -> None:
    handed_on = HandedOn()
    taken = [len(handed_on.take(commands(3000, organization=name), since=0)) for name in ("one", "two", "three")]
    assert taken == [2000, 2000, 0]
