"""Destinations that people activate and deactivate, and the posts that wait for them."""

import asyncio

import pytest

from publisher_service.adapters.postgres.destinations import lock_destination
from publisher_service.domain.destination import DestinationState
from publisher_service.domain.post_job import Target
from servicekit.faults import Conflict, NotFound
from tests.usecase.publisher_service.addressees import (
    REFUSED,
    a_chat,
    all_at_once,
    posts_to,
    releasing,
    switch,
    the_destination,
)
from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, a_sent, claims_in

ACTIVE, INACTIVE = DestinationState.ACTIVE, DestinationState.INACTIVE
CHAT = a_chat()


async def test_posts_to_an_inactive_destination_are_blocked_out_of_the_line(replica: Replica) -> None:
    to_chat = await posts_to(replica, CHAT, 2)
    await replica.save(a_draft("feed", "bot"))
    await switch(replica, CHAT, INACTIVE)
    answers = await replica.claim([*to_chat, a_command("feed", "bot")])
    assert [each.job.draft_id for each in claims_in(answers)] == ["feed"]
    assert await replica.states() == {"BLOCKED DESTINATION_INACTIVE": 2, "SENDING": 1}
    assert await replica.rows("select 1 from post_job where state = 'BLOCKED' and next_action_time <> not_after") == []


async def test_the_first_of_a_line_makes_room_for_the_others(replica: Replica) -> None:
    """Its destination became inactive while it waited for its turn."""
    chat, other = a_chat("@chat"), a_chat("@other")
    first, second = await posts_to(replica, chat, 2, prefix="a")
    (third,) = await posts_to(replica, other, 1, prefix="b")
    (out,) = claims_in(await replica.claim([first]))
    await replica.claim([second])
    await replica.claim([third])
    await switch(replica, chat, INACTIVE)
    await replica.settle([a_sent(out)])
    assert (await replica.turns()).more
    assert [each.job.target for each in await replica.next_in_line()] == [other]
    assert await replica.states() == {"PUBLISHED": 1, "BLOCKED DESTINATION_INACTIVE": 1, "SENDING": 1}


async def test_a_deactivated_destination_of_another_account_blocks_nothing(replica: Replica) -> None:
    commands = await posts_to(replica, CHAT, 1)
    await replica.connect("other")
    for other in (
        a_chat(account="other"),
        a_chat("@chat2"),
        Target(social_account_id="bot", channel="x", destination="@chat"),
    ):
        await switch(replica, other, INACTIVE)
    assert len(claims_in(await replica.claim(commands))) == 1


async def test_activating_forgets_failures_and_releases_the_posts(replica: Replica) -> None:
    commands = await posts_to(replica, CHAT, 8)
    await replica.settle([a_sent(each, REFUSED) for each in await all_at_once(replica, commands[:5])])
    await replica.claim(commands[5:])
    assert await replica.states() == {"FAILED": 5, "BLOCKED DESTINATION_INACTIVE": 3}
    active = await switch(replica, CHAT, ACTIVE)
    assert (active.state, active.failures, active.error_message, active.deactivate_time) == (ACTIVE, 0, "", None)
    while await releasing(replica)():
        pass
    assert await replica.states() == {"FAILED": 5, "READY IN_LINE": 3}
    assert (await the_destination(replica)).releasing is False
    for _ in range(3):
        (claimed,) = await replica.next_in_line()
        await replica.settle([a_sent(claimed)])
    assert await replica.states() == {"FAILED": 5, "PUBLISHED": 3}


async def test_a_post_whose_destination_is_just_being_activated_comes_back(replica: Replica, another: Replica) -> None:
    (command,) = await posts_to(replica, CHAT, 1)
    await switch(replica, CHAT, INACTIVE)
    async with another.database.transaction() as tx:
        await lock_destination(tx.connection, "acme", CHAT)
        assert claims_in(await replica.claim([command])) == []
        assert await replica.states() == {"PENDING": 1}, "a block would outlive the release"
    await replica.claim([command])
    assert await replica.states() == {"BLOCKED DESTINATION_INACTIVE": 1}


async def test_a_destination_without_an_account_cannot_be_deactivated(replica: Replica) -> None:
    with pytest.raises(NotFound) as refusal:
        await switch(replica, CHAT, INACTIVE)
    assert refusal.value.reason == "ACCOUNT_NOT_FOUND"
    assert await replica.rows("select 1 from destination") == []


async def test_a_stale_etag_changes_nothing(replica: Replica) -> None:
    await replica.connect("bot")
    first = await switch(replica, CHAT, INACTIVE, note="she left")
    second = await switch(replica, CHAT, ACTIVE, etag=first.etag)
    before = await the_destination(replica)
    for state in (ACTIVE, INACTIVE):
        with pytest.raises(Conflict):
            await switch(replica, CHAT, state, etag=first.etag)
    assert await the_destination(replica) == before
    assert (await switch(replica, CHAT, INACTIVE, etag=second.etag)).version == 3


async def test_concurrent_first_deactivations_leave_one_row(replica: Replica, another: Replica) -> None:
    await replica.connect("bot")
    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(switch((replica, another)[number % 2], CHAT, INACTIVE, note="n"))
    row = await the_destination(replica)
    assert (row.state, row.state_reason, row.error_message, row.version) == ("INACTIVE", "DEACTIVATED", "n", 1)


async def test_what_a_person_said_stays_when_more_is_refused(replica: Replica) -> None:
    claimed = await all_at_once(replica, await posts_to(replica, CHAT, 2))
    await switch(replica, CHAT, INACTIVE, note="she left")
    await replica.settle([a_sent(each, REFUSED) for each in claimed])
    row = await the_destination(replica)
    assert (row.state_reason, row.error_message, row.failures, row.version) == ("DEACTIVATED", "she left", 2, 1)
