"""Commands that cannot be read become dead letters, and the next ones go on."""

import pytest

from devstack.servers.postgres import EmbeddedPostgres
from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Start


async def test_an_unreadable_command_is_parked_and_does_not_hold_up_others(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        for payload in (b"\xff\xff", b""):
            await rig.client.jetstream().publish("publish.0.acme", payload)
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
        letters = await rig.rows("select consumer, reason from dead_letter")
        assert [letter.consumer for letter in letters] == ["publisher", "publisher"]


async def test_an_unreadable_command_is_parked_once_the_database_is_back(
    start_on_own_postgres: Start, own_postgres: EmbeddedPostgres
) -> None:
    async with start_on_own_postgres() as rig:
        await rig.connect()
        await own_postgres.kill()
        await rig.client.jetstream().publish("publish.0.acme", b"\xff\xff")

        async def was_given() -> bool:
            info = await rig.client.jetstream().consumer_info("PUBLISH", "publisher-0of1")
            return bool(info.num_pending == 0 and info.delivered.consumer_seq >= 2)

        await eventually(was_given)
        await own_postgres.start()

        async def parked() -> bool:
            try:
                return len(await rig.rows("select 1 from dead_letter")) == 1
            except OSError as error:
                raise AssertionError("the database is down") from error

        await eventually(parked, within=30)
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")


@pytest.mark.parametrize(
    ("instant", "zone"), [("0001-01-01T00:00:01Z", "America/New_York"), ("0001-01-01T00:00:00Z", "UTC")]
)
async def test_a_command_for_the_year_1_is_missed_and_does_not_end_the_process(
    start: Start, instant: str, zone: str
) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        await rig.in_state("PENDING", "d1")
        slot = rig.new_slot()
        command = rig.command_message("d1", slot, rig.clock.now())
        command.time_zone = zone
        command.schedule_time.FromJsonString(instant)
        command.not_after.FromJsonString(instant)
        await rig.client.jetstream().publish("publish.0.acme", command.SerializeToString())
        await rig.in_state("MISSED", "d1")
