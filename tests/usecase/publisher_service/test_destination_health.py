"""Settlements keep the health of destinations, and deactivate those that five refusals in a row have hit."""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.adapters.providers.adapter import Post
from publisher_service.application import destination_log
from publisher_service.domain.outcome import AuthRefused, Finding, Found, NotSent, Outcome, RateLimited, Rejected
from tests.usecase.publisher_service.addressees import (
    BLOCKED,
    REFUSED,
    a_chat,
    all_at_once,
    posts_to,
    the_destination,
    to_chat,
)
from tests.usecase.publisher_service.replica import Replica, TrustingAdapter, a_command, a_sent, claims_in

CHAT = a_chat()


async def send(replica: Replica, draft: str, outcome: Outcome | None = None) -> None:
    (claimed,) = claims_in(await replica.claim([to_chat(draft, CHAT)]))
    await replica.settle([a_sent(claimed, outcome)])


async def test_five_refusals_in_a_row_deactivate_a_destination(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    await posts_to(replica, CHAT, 5)
    for number in range(4):
        await send(replica, f"p{number}", REFUSED)
    before = await the_destination(replica)
    assert (before.state, before.failures, before.version, before.deactivate_time) == ("ACTIVE", 4, 1, None)
    with caplog.at_level(logging.WARNING, destination_log.__name__):
        await send(replica, "p4", REFUSED)
    after = await the_destination(replica)
    assert (after.state, after.state_reason, after.failures, after.version) == ("INACTIVE", "FAILURES", 5, 2)
    assert (after.error_message, after.last_success_time) == ("there is no such chat", None)
    assert after.last_failure_time == after.deactivate_time or after.deactivate_time > after.last_failure_time
    (line,) = (each for each in caplog.records if each.name == destination_log.__name__)
    assert {"organization_id": "acme", "social_account_id": "bot", "reason": "FAILURES"}.items() <= vars(line).items()
    assert "@chat" not in str(vars(line)), "a destination may be the address of a person"


async def test_a_success_forgets_the_refusals_before_it(replica: Replica) -> None:
    await posts_to(replica, CHAT, 9)
    for number in range(9):
        await send(replica, f"p{number}", None if number == 4 else REFUSED)
    row = await the_destination(replica)
    assert (row.state, row.failures, row.error_message) == ("ACTIVE", 4, "there is no such chat")
    assert row.last_success_time < row.last_failure_time


async def test_a_block_by_the_peer_deactivates_at_once(replica: Replica) -> None:
    await posts_to(replica, CHAT, 1)
    await send(replica, "p0", BLOCKED)
    row = await the_destination(replica)
    assert (row.state, row.state_reason, row.failures) == ("INACTIVE", "BLOCKED_BY_PEER", 1)
    assert row.error_message == "she has blocked you"


async def test_a_block_by_the_peer_deactivates_what_has_worked(replica: Replica) -> None:
    await posts_to(replica, CHAT, 2)
    await send(replica, "p0")
    await send(replica, "p1", BLOCKED)
    row = await the_destination(replica)
    assert (row.state, row.state_reason, row.failures, row.version) == ("INACTIVE", "BLOCKED_BY_PEER", 1, 2)


@pytest.mark.parametrize(
    "outcome",
    [
        AuthRefused(message=""),
        NotSent(reason="CONNECTION_REFUSED", message=""),
        RateLimited(message="", retry_after=timedelta(seconds=1)),
        Rejected(reason="CONTENT_UNREADABLE", message=""),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
async def test_what_says_nothing_of_a_destination_leaves_no_row(replica: Replica, outcome: Outcome) -> None:
    await posts_to(replica, CHAT, 1)
    await send(replica, "p0", outcome)
    assert await replica.rows("select * from destination") == []


async def test_the_feed_of_an_account_is_no_destination(replica: Replica) -> None:
    names = await replica.posts(2)
    claimed = claims_in(await replica.claim([a_command(name) for name in names]))
    await replica.settle([a_sent(claimed[0]), a_sent(claimed[1], REFUSED)])
    assert await replica.rows("select * from destination") == []


async def test_signs_of_one_batch_count_in_the_order_of_their_times(replica: Replica) -> None:
    claimed = await all_at_once(replica, await posts_to(replica, CHAT, 7))
    outcomes = [REFUSED, BLOCKED, REFUSED, None, REFUSED, replace(REFUSED, message="the last"), None]
    batch = [
        replace(a_sent(each, outcome), time=each.job.update_time + timedelta(milliseconds=number))
        for number, (each, outcome) in enumerate(zip(claimed, outcomes, strict=True))
    ]
    await replica.settle([*reversed(batch[:6])])
    row = await the_destination(replica)
    assert (row.state, row.failures, row.error_message) == ("ACTIVE", 2, "the last")
    assert (row.last_success_time, row.last_failure_time) == (batch[3].time, batch[5].time)
    await replica.settle([batch[6]])
    assert (await the_destination(replica)).failures == 0


async def test_a_success_leaves_an_inactive_destination_to_a_person(replica: Replica) -> None:
    claimed = await all_at_once(replica, await posts_to(replica, CHAT, 7))
    await replica.settle([a_sent(each, REFUSED) for each in claimed[:6]])
    await replica.settle([a_sent(claimed[6])])
    row = await the_destination(replica)
    assert (row.state, row.state_reason, row.failures, row.version) == ("INACTIVE", "FAILURES", 0, 1)


async def test_destinations_of_one_batch_are_kept_apart(replica: Replica) -> None:
    chats = [a_chat(name, account) for account in ("bot", "mailer") for name in ("@a", "@b")]
    for index, chat in enumerate(chats):
        claimed = await all_at_once(replica, await posts_to(replica, chat, index + 2, prefix=f"q{index}-"))
        await replica.settle([a_sent(each, REFUSED) for each in claimed])
    rows = await replica.rows("select social_account_id, destination, state, failures from destination order by 1, 2")
    assert [tuple(row) for row in rows] == [
        ("bot", "@a", "ACTIVE", 2),
        ("bot", "@b", "ACTIVE", 3),
        ("mailer", "@a", "ACTIVE", 4),
        ("mailer", "@b", "INACTIVE", 5),
    ]


async def test_settlements_of_many_processes_count_exactly(
    replica: Replica, another: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    """Each batch has a post of both accounts. The ids of jobs, and with them the order of a batch, are random."""
    here = await all_at_once(replica, await posts_to(replica, a_chat(account="bot"), 24, prefix="b"))
    there = await all_at_once(replica, await posts_to(replica, a_chat(account="mailer"), 24, prefix="m"))
    pairs = list(zip(here, there, strict=True))
    with caplog.at_level(logging.WARNING, destination_log.__name__):
        async with asyncio.TaskGroup() as group:
            for number, pair in enumerate(pairs):
                mine = (replica, another)[number % 2]
                group.create_task(mine.settle([a_sent(each, REFUSED) for each in pair]))
    rows = await replica.rows("select state, failures, version from destination")
    assert [tuple(row) for row in rows] == [("INACTIVE", 24, 2)] * 2
    assert len([each for each in caplog.records if each.name == destination_log.__name__]) == 2
    (counted,) = await replica.rows("select deadlocks from pg_stat_database where datname = current_database()")
    assert counted.deadlocks == 0


class Remembering(TrustingAdapter):
    async def look(self, post: Post) -> Finding:
        return Found(external_id="out", external_url="")


async def test_a_look_that_finds_the_post_is_a_success(database_url: str, hasty: Replica) -> None:
    replica = Replica(database_url, adapter=Remembering())
    commands = await posts_to(replica, CHAT, 2)
    await send(replica, "p0", REFUSED)
    claims_in(await hasty.claim(commands[1:]))
    await replica.recover()
    (question,) = (await replica.recover()).questions
    await replica.look_up(question.job)
    row = await the_destination(replica)
    assert (row.failures, row.last_success_time is None) == (0, False)
    await replica.database.dispose()
