"""A resend of a run in doubt says since when the post may be out, and stops where a repeat would not be ignored."""

from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.provider import Providers
from publisher_service.application.hold_check import HoldCheck
from publisher_service.application.send_post import SendPost
from publisher_service.domain.outcome import Ambiguous, Finding, NotBegun, Outcome, Repeatable
from servicekit.pg.clock import SteadyClock
from servicekit.pg.database import Database
from tests.usecase.publisher_service.replica import Replica, TrustingAdapter, a_command, claims_in


class ForgetfulAdapter(TrustingAdapter):
    """Loses each answer; a repeat does no harm."""

    def __init__(self, *, window: timedelta | None = None) -> None:
        self.limits = replace(TrustingAdapter.limits, repeat_window=window)
        self.posts: list[Post] = []

    async def send(self, post: Post) -> Outcome:
        self.posts.append(post)
        return Ambiguous(reason="CONNECTION_LOST", message="")

    async def look(self, post: Post) -> Finding:
        return Repeatable(message="a repeat does no harm")


async def send_again(replica: Replica, *, most: int) -> list[Outcome]:
    """Sends a post, and again after each look, until it is not sent any more. Returns the outcomes."""
    (name,) = await replica.posts(1)
    outcomes: list[Outcome] = []
    for _ in range(most):
        (claimed,) = claims_in(await replica.claim([a_command(name)])) or await replica.next_in_line()
        sent = await replica.send(claimed)
        outcomes.append(sent.outcome)
        await replica.settle([sent])
        for question in (await replica.recover()).questions:
            await replica.look_up(question.job)
    return outcomes


async def test_each_resend_carries_the_start_of_the_first_request(database_url: str) -> None:
    adapter = ForgetfulAdapter()
    replica = Replica(database_url, adapter=adapter)
    await send_again(replica, most=3)
    attempts = await replica.rows("select start_time from attempt order by fence")
    assert [post.since for post in adapter.posts] == [None, attempts[0].start_time, attempts[0].start_time]
    await replica.database.dispose()


@pytest.mark.parametrize(("window", "requests"), [(timedelta(minutes=10), 2), (timedelta(0), 1)])
async def test_nothing_is_sent_again_once_its_window_is_over(
    database_url: str, window: timedelta, requests: int
) -> None:
    adapter = ForgetfulAdapter(window=window)
    replica = Replica(database_url, adapter=adapter)
    outcomes = await send_again(replica, most=2)
    assert len(adapter.posts) == requests
    assert (getattr(outcomes[1], "reason", "") == "TOO_LATE_TO_REPEAT") == (requests == 1)
    await replica.database.dispose()


async def test_a_post_in_doubt_is_not_sent_while_its_attempts_cannot_be_read(database_url: str) -> None:
    adapter = ForgetfulAdapter()
    replica = Replica(database_url, adapter=adapter)
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([await replica.send(claimed)])
    for question in (await replica.recover()).questions:
        await replica.look_up(question.job)
    (again,) = claims_in(await replica.claim([a_command(name)])) or await replica.next_in_line()
    steady, nobody = SteadyClock(replica.system), Database("postgresql://n:n@127.0.0.1:1/n", application="test")
    await steady.start(replica.clock, replica.database)
    send = SendPost(
        providers=Providers([adapter], replica.system),
        vault=replica.vault,
        holds=HoldCheck(database=replica.database, clock=replica.system),
        database=nobody,
        clock=replica.system,
        steady=steady,
    )
    sent = await send(again, claim_started=replica.system.monotonic())
    assert isinstance(sent.outcome, NotBegun)
    assert sent.outcome.reason == "ATTEMPTS_UNREADABLE"
    assert len(adapter.posts) == 1
    await replica.database.dispose()
