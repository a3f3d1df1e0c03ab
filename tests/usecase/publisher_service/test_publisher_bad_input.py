"""What comes from outside, however bad and however inconvenient the moment, does not end the process."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from devstack.servers.postgres import EmbeddedPostgres
from testkit.eventually import eventually

Start = Callable[..., AbstractAsyncContextManager[Any]]


async def test_an_answer_that_no_database_can_hold_is_looked_up(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        body = '{"id": "sp-\\u0000", "url": "http://x"}'
        await rig.sandbox.faults({"fault": "garbage", "effect": True, "body": body})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("PUBLISHED", "d1")
        (effect,) = rig.sandbox.effects()
        assert job.external_id == effect["id"]


async def test_a_command_that_cannot_be_read_waits_for_a_database_that_is_away(
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
                raise AssertionError("the database is away") from error

        await eventually(parked, within=30)
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
