"""A channel whose quota is used up is closed for its account until the reset; everything else goes on."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from publisher_service.adapters.postgres.claim import claim
from publisher_service.domain.claim import Verdict
from publisher_service.domain.outcome import Accepted, Level, Outcome, Quota, RateLimited
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.post_job import Target
from testkit.plans import Explaining
from tests.usecase.publisher_service.outreach import NOON, Outreach
from tests.usecase.publisher_service.replica import a_draft, claims_in
from tests.usecase.publisher_service.rig import Start
from tests.usecase.publisher_service.test_plans_of_limits import OF_LIMITS, looked_up

HOUR = timedelta(hours=1)
LIMITED = RateLimited(message="later", retry_after=HOUR, level=Level.CHANNEL)


def nothing_left(after: timedelta = HOUR, *, remaining: int = 0) -> Accepted:
    quota = Quota(level=Level.CHANNEL, remaining=remaining, reset_after=after)
    return Accepted(external_id="out", external_url="", quotas=[quota])


async def close(outreach: Outreach, outcome: Outcome | None = None, *, channel: str = "facebook") -> None:
    """Sends a post to the channel, whose answer closes it."""
    (claimed,) = await outreach.claim(await outreach.save(1, prefix="closing-", channel=channel))
    await outreach.settle(claimed, outcome or nothing_left())


@pytest.fixture
async def beside(outreach: Outreach, database_url: str) -> AsyncIterator[Outreach]:
    """Another process on the same database, under the same clock."""
    beside = Outreach(database_url)
    beside.clock = beside.replica.clock = outreach.clock
    yield beside
    await beside.replica.database.dispose()


async def test_posts_to_a_closed_channel_are_parked_until_the_reset(outreach: Outreach) -> None:
    await close(outreach)
    assert await outreach.claim(await outreach.save(3, channel="facebook")) == []
    job = await outreach.job("d001")
    assert (job.state, job.state_reason, job.parked_on) == ("WAITING", "PROVIDER_QUOTA", "channel:facebook")
    assert (job.expected_time, job.next_action_time, job.attempts) == (NOON + HOUR, job.not_after, 0)
    assert await outreach.pass_time(HOUR - timedelta(seconds=1)) == []
    (first,) = await outreach.pass_time(timedelta(seconds=1))
    assert first.job.attempts == 1
    assert await outreach.replica.states() == {"PUBLISHED": 1, "SENDING": 1, "READY IN_LINE": 2}


async def test_other_channels_and_actions_of_the_account_go_on(outreach: Outreach) -> None:
    await close(outreach)
    assert await outreach.claim(await outreach.save(1, channel="facebook")) == []
    for channel in ("linkedin_profile", "email"):
        (claimed,) = await outreach.claim(await outreach.save(1, prefix=channel, channel=channel))
        await outreach.settle(claimed)
    assert await outreach.replica.states() == {"PUBLISHED": 3, "WAITING PROVIDER_QUOTA": 1}


async def test_a_429_closes_its_channel_and_its_own_post_waits_as_ever(outreach: Outreach) -> None:
    await close(outreach, LIMITED)
    assert await outreach.claim(await outreach.save(2, channel="facebook")) == []
    assert await outreach.replica.states() == {"WAITING RATE_LIMITED": 1, "WAITING PROVIDER_QUOTA": 2}
    job = await outreach.job("closing-000")
    assert (job.next_action_time, job.attempts, job.parked_on) == (NOON + HOUR, 0, "")
    # A minute more: the sweep gives the message of the stream time to come first.
    outreach.clock.moment += HOUR + timedelta(minutes=1)
    (own,) = claims_in(await outreach.replica.claim((await outreach.replica.recover()).due))
    assert own.job.draft_id == "closing-000"


async def test_posts_behind_the_one_that_closed_the_channel_are_parked_at_once(outreach: Outreach) -> None:
    first, *others = await outreach.save(60, channel="facebook")
    (last,) = await outreach.save(1, prefix="last", channel="linkedin_profile")
    (claimed,) = await outreach.claim([first])
    await outreach.claim([*others, last])
    await outreach.settle(claimed, nothing_left())
    (passes,) = await outreach.turns()
    assert passes.job.draft_id == "last000"
    assert await outreach.replica.states() == {"PUBLISHED": 1, "SENDING": 1, "WAITING PROVIDER_QUOTA": 59}


async def test_a_few_come_back_at_a_time_and_wait_if_the_channel_closes_again(outreach: Outreach) -> None:
    await close(outreach)
    commands = await outreach.save(70, channel="facebook")
    assert await outreach.claim(commands) == []
    (claimed,) = await outreach.pass_time(HOUR)
    assert await outreach.replica.states() == {
        "PUBLISHED": 1,
        "SENDING": 1,
        "READY IN_LINE": 49,
        "WAITING PROVIDER_QUOTA": 20,
    }
    await outreach.settle(claimed, nothing_left())
    assert await outreach.turns() == []
    assert await outreach.pass_time(timedelta(seconds=5)) == []
    assert await outreach.replica.states() == {"PUBLISHED": 2, "WAITING PROVIDER_QUOTA": 69}
    (line,) = await outreach.replica.rows("select wake_time from parked_line")
    assert line.wake_time == NOON + 2 * HOUR


async def test_no_post_of_many_fails_or_spends_an_attempt_of_a_quota(outreach: Outreach) -> None:
    """Four posts an hour: what is over waits, however often the channel closes."""
    commands = await outreach.save(30, channel="facebook")
    waiting, left, end = await outreach.claim(commands), 4, NOON + HOUR
    for _ in range(200):
        for claimed in waiting:
            if outreach.now >= end:
                left, end = 4, outreach.now + HOUR
            assert left > 0, "no post goes to a closed channel"
            left -= 1
            await outreach.settle(claimed, nothing_left(end - outreach.now, remaining=left))
        waiting = await outreach.pass_time(timedelta(minutes=3))
    assert await outreach.replica.states() == {"PUBLISHED": 30}
    (tried,) = await outreach.replica.rows(
        "select max(attempts), count(*) from attempt, post_job where id = post_job_id"
    )
    assert tuple(tried) == (1, 30)


async def test_a_channel_is_closed_for_every_process(outreach: Outreach, beside: Outreach) -> None:
    await close(outreach)
    assert await beside.claim(await beside.save(2, channel="facebook")) == []
    assert await beside.replica.states() == {"PUBLISHED": 1, "WAITING PROVIDER_QUOTA": 2}
    outreach.clock.moment += HOUR
    assert (await beside.wake.look(), await outreach.wake.look()) == (False, True)
    both = [*await beside.turns(), *await outreach.turns()]
    assert len(both) == 1
    assert await outreach.replica.states() == {"PUBLISHED": 1, "SENDING": 1, "READY IN_LINE": 1}


async def test_other_accounts_keep_the_channel(outreach: Outreach) -> None:
    await close(outreach)
    await outreach.connect("other")
    target = Target(social_account_id="other", channel="facebook")
    await outreach.replica.save(replace(a_draft("x", "other"), targets=(target,)), now=outreach.now)
    (command,) = [replace(each, draft_id="x", target=target) for each in await outreach.save(1)]
    assert len(await outreach.claim([command])) == 1


@pytest.mark.parametrize(
    "outcome",
    [nothing_left(remaining=1), RateLimited(message="", retry_after=HOUR), Accepted(external_id="", external_url="")],
    ids=["one left", "429 of the account", "no quota"],
)
async def test_nothing_else_closes_a_channel(outreach: Outreach, outcome: Outcome) -> None:
    await close(outreach, outcome)
    assert await closed(outreach) is None


async def test_the_later_end_counts_and_what_is_open_again_is_dropped(outreach: Outreach) -> None:
    await close(outreach, replace(LIMITED, quotas=nothing_left(2 * HOUR).quotas))
    assert (await closed(outreach)).keys() == {"facebook"}
    assert await outreach.claim(await outreach.save(1, channel="facebook")) == []
    assert (await outreach.job("d000")).expected_time == NOON + 2 * HOUR
    outreach.clock.moment += 3 * HOUR
    (claimed,) = await outreach.claim(await outreach.save(1, prefix="in", channel="linkedin_profile"))
    await outreach.settle(claimed, nothing_left())
    assert (await closed(outreach)).keys() == {"linkedin_profile"}


async def test_publish_now_starts_and_waits_for_the_provider(outreach: Outreach) -> None:
    await close(outreach)
    target = Target(social_account_id="page", channel="facebook")
    urgent: SavedDraft = replace(a_draft("now", "page"), targets=(target,))
    (result,) = await outreach.replica.publish(urgent)
    assert result.reason == ""
    assert claims_in(await outreach.replica.claim((await outreach.replica.recover()).due)) == []
    job = await outreach.job("now")
    assert (job.state, job.state_reason, job.expected_time) == ("WAITING", "PROVIDER_QUOTA", NOON + HOUR)
    assert [each.job.draft_id for each in await outreach.pass_time(HOUR)] == ["now"]


async def test_the_claim_of_a_closed_channel_looks_nothing_up(outreach: Outreach) -> None:
    await close(outreach)
    commands = await outreach.save(20, channel="facebook")
    async with outreach.replica.database.engine.connect() as connection:
        explaining = Explaining(connection, growing=OF_LIMITS)
        session: Any = explaining
        judged = await claim(session, commands, outreach.replica.lanes, now=NOON, sender="sender")
    assert {each.verdict for each in judged.values()} == {Verdict.PROVIDER_QUOTA}
    assert looked_up(explaining) == set()


async def closed(outreach: Outreach) -> Any:
    (gate,) = await outreach.replica.rows("select closed_channels from account_gate where social_account_id = 'page'")
    return gate.closed_channels


async def test_a_process_learns_it_from_the_answers_of_its_provider(start: Start) -> None:
    async with start() as rig:
        await rig.sandbox.quotas({"level": "channel", "limit": 1, "seconds": 2})
        await rig.connect()
        names = [f"d{number}" for number in range(3)]
        for name in names:
            await rig.save_draft(name)
        due = rig.clock.now()
        for name in names:
            await rig.go(name, due=due)
        for name in names:
            assert (await rig.in_state("PUBLISHED", name)).attempts == 1
        assert len(rig.sandbox.effects()) == 3
        (refused,) = await rig.rows("select count(*) from attempt where state <> 'ACCEPTED'")
        assert tuple(refused) == (0,), "no post is sent to a closed channel"
