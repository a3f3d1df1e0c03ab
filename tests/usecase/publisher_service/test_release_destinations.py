"""Posts that waited for a destination come into the line of its account, a page at a time, and none is left behind."""

import asyncio
import random

from publisher_service.domain.destination import DestinationState
from tests.usecase.publisher_service.addressees import a_chat, posts_to, releasing, switch
from tests.usecase.publisher_service.replica import Replica, a_sent, claims_in

ACTIVE, INACTIVE = DestinationState.ACTIVE, DestinationState.INACTIVE
CHAT = a_chat()


async def test_posts_are_released_in_pages_the_first_ones_first(replica: Replica) -> None:
    commands = await posts_to(replica, CHAT, 201)
    await replica.write("update post_job set schedule_time = now() where draft_id = 'p0'")
    await switch(replica, CHAT, INACTIVE)
    await replica.claim(commands)
    await switch(replica, CHAT, ACTIVE)
    release = releasing(replica)
    assert await release()
    assert await replica.states() == {"READY IN_LINE": 200, "BLOCKED DESTINATION_INACTIVE": 1}
    assert (await release(), await release(), await release()) == (True, True, False)
    assert await replica.states() == {"READY IN_LINE": 201}


async def test_released_posts_of_a_disconnected_account_wait_for_it(replica: Replica) -> None:
    commands = await posts_to(replica, CHAT, 2)
    await switch(replica, CHAT, INACTIVE)
    await replica.claim(commands)
    await replica.write("update account_gate set connected = false")
    await switch(replica, CHAT, ACTIVE)
    while await releasing(replica)() or await replica.relabel():
        pass
    assert await replica.states() == {"BLOCKED ACCOUNT_NOT_CONNECTED": 2}
    await replica.connect("bot")
    assert len(await replica.next_in_line()) == 1


async def test_no_post_is_left_behind_by_claims_beside_activations(replica: Replica, another: Replica) -> None:
    commands = await posts_to(replica, CHAT, 60)
    await switch(replica, CHAT, INACTIVE)
    release = releasing(another)

    async def claim(mine: Replica) -> None:
        for command in random.sample(commands, len(commands)):
            await mine.settle([a_sent(each) for each in claims_in(await mine.claim([command]))])

    async def change() -> None:
        for _ in range(15):
            await switch(another, CHAT, random.choice([ACTIVE, INACTIVE]))
            await release()

    async with asyncio.TaskGroup() as group:
        group.create_task(claim(replica))
        group.create_task(claim(another))
        group.create_task(change())
    await switch(replica, CHAT, ACTIVE)
    while await release():
        pass
    while claimed := await replica.next_in_line():
        await replica.settle([a_sent(each) for each in claimed])
    left = set(await replica.states())
    assert left <= {"PUBLISHED", "PENDING"}, left
    (counted,) = await replica.rows("select deadlocks from pg_stat_database where datname = current_database()")
    assert counted.deadlocks == 0
