"""Claims under limits: what is over one waits for it, and is never failed nor tried."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise

import pytest

from civil.windows import SendWindow
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    AuthRefused,
    NotBegun,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from tests.usecase.publisher_service.outreach import NOON, SPACING, Outreach

MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)


async def test_twenty_emails_a_day_go_out_and_the_others_the_next_day(outreach: Outreach) -> None:
    outreach.clock.moment = MIDNIGHT - timedelta(hours=24)
    (first, *_) = await outreach.claim(await outreach.save(50))
    await outreach.settle(first)
    sent = [outreach.now, *await outreach.send_all(until=MIDNIGHT + timedelta(hours=30))]
    days = [each.date().isoformat() for each in sent]
    assert [days.count(day) for day in ("2026-03-02", "2026-03-03", "2026-03-04")] == [20, 20, 10]
    assert all(after - before >= SPACING for before, after in pairwise(sent))
    assert await outreach.replica.states() == {"PUBLISHED": 50}
    attempts = await outreach.replica.rows("select max(attempts), count(*) from post_job")
    assert tuple(attempts[0]) == (1, 50)


async def test_a_post_over_the_cap_shows_when_the_next_day_begins(outreach: Outreach) -> None:
    await outreach.follow(time_zone="America/New_York")
    commands = await outreach.save(2)
    await outreach.claim(commands[:1])
    await outreach.replica.write("update account_action set cap = 1")
    await outreach.claim(commands[1:])
    job = await outreach.job("d001")
    assert (job.state, job.state_reason, job.parked_on) == ("WAITING", "DAILY_CAP", "action:EMAIL")
    assert (job.expected_time, job.attempts) == (datetime(2026, 3, 3, 5, tzinfo=UTC), 0)
    assert job.next_action_time == job.not_after


async def test_the_next_email_waits_for_its_spacing_and_a_post_passes(outreach: Outreach) -> None:
    first, second = await outreach.save(2)
    (claimed,) = await outreach.claim([first])
    outreach.clock.moment += timedelta(seconds=5)
    await outreach.settle(claimed)
    assert await outreach.claim([second]) == []
    job = await outreach.job("d001")
    assert (job.state_reason, job.expected_time) == ("SPACING", outreach.now + SPACING)
    (post,) = await outreach.save(1, prefix="post", channel="facebook")
    (out,) = await outreach.claim([post])
    await outreach.settle(out)
    assert await outreach.pass_time(SPACING - timedelta(seconds=1)) == []
    assert [each.job.draft_id for each in await outreach.pass_time(timedelta(seconds=1))] == ["d001"]


async def test_messages_and_requests_are_spaced_from_each_other(outreach: Outreach) -> None:
    (email,) = await outreach.save(1)
    (claimed,) = await outreach.claim([email])
    await outreach.settle(claimed)
    (message,) = await outreach.save(1, prefix="m", channel="linkedin_message")
    assert await outreach.claim([message]) == []
    assert (await outreach.job("m000")).state_reason == "SPACING"


@pytest.mark.parametrize(("channel", "most"), [("linkedin_message", 50), ("linkedin_connection", 20)])
async def test_each_action_has_its_own_default_cap(outreach: Outreach, channel: str, most: int) -> None:
    outreach.clock.moment = MIDNIGHT
    commands = await outreach.save(most + 2, channel=channel)
    for claimed in await outreach.claim(commands):
        await outreach.settle(claimed)
    await outreach.send_all(until=MIDNIGHT + timedelta(hours=23))
    states = await outreach.replica.states()
    assert states == {"PUBLISHED": most, "WAITING DAILY_CAP": 2}


OWN_CAP = """
    insert into account_action (organization_id, social_account_id, action, cap) values ('acme', 'page', :action, :cap)
"""


async def test_a_cap_of_zero_stops_an_action(outreach: Outreach) -> None:
    (command,) = await outreach.save(1)
    await outreach.replica.write(OWN_CAP, action="EMAIL", cap=0)
    assert await outreach.claim([command]) == []
    assert await outreach.replica.states() == {"WAITING DAILY_CAP": 1}
    assert await outreach.pass_time(timedelta(days=2)) == []


async def test_a_cap_of_posts_holds_once_the_gate_knows_it(outreach: Outreach) -> None:
    commands = await outreach.save(3, channel="facebook")
    await outreach.replica.write(OWN_CAP, action="POST", cap=2)
    await outreach.replica.write("update account_gate set limited = true")
    for command in commands:
        for claimed in await outreach.claim([command]):
            await outreach.settle(claimed)
    assert await outreach.replica.states() == {"PUBLISHED": 2, "WAITING DAILY_CAP": 1}
    assert await outreach.used("POST") == 2


async def test_an_inmail_has_no_cap_but_is_spaced(outreach: Outreach) -> None:
    commands = await outreach.save(2, channel="linkedin_inmail")
    (claimed, *_) = await outreach.claim(commands)
    await outreach.settle(claimed)
    assert len(await outreach.pass_time(timedelta(minutes=1))) == 0
    assert len(await outreach.pass_time(SPACING)) == 1
    assert await outreach.used("INMAIL") == 2


@pytest.mark.parametrize(
    ("outcome", "used"),
    [
        (Accepted(external_id="1", external_url=""), 1),
        (Ambiguous(reason="TIMEOUT", message=""), 1),
        (Rejected(reason="REJECTED", message=""), 0),
        (NotSent(reason="NO_CONNECTION", message=""), 0),
        (NotBegun(reason="STOPPING", message=""), 0),
        (RateLimited(message="", retry_after=timedelta(minutes=1)), 0),
        (AuthRefused(message=""), 0),
    ],
)
async def test_only_a_proven_failure_gives_its_place_back(outreach: Outreach, outcome: Outcome, used: int) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    assert await outreach.used() == 1
    await outreach.settle(claimed, outcome)
    assert await outreach.used() == used


async def test_what_had_no_effect_keeps_no_other_back(outreach: Outreach) -> None:
    first, second = await outreach.save(2)
    (claimed,) = await outreach.claim([first])
    await outreach.settle(claimed, Rejected(reason="REJECTED", message=""))
    assert len(await outreach.claim([second])) == 1


async def test_a_place_that_is_given_back_goes_to_the_next(outreach: Outreach) -> None:
    first, second = await outreach.save(2)
    (claimed,) = await outreach.claim([first])
    await outreach.replica.write("update account_action set cap = 1")
    assert await outreach.claim([second]) == []
    assert (await outreach.job("d001")).state_reason == "DAILY_CAP"
    await outreach.settle(claimed, Rejected(reason="REJECTED", message=""))
    assert [each.job.draft_id for each in await outreach.pass_time(timedelta(0))] == ["d001"]


@pytest.mark.parametrize(
    ("zone", "noon", "opens"),
    [
        # From Saturday to the Monday after the clocks went forward, and after they went back.
        ("Europe/Berlin", datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 3, 30, 7, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2026, 10, 26, 8, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2026, 10, 3, 6, tzinfo=UTC), datetime(2026, 10, 4, 22, tzinfo=UTC)),
    ],
)
async def test_posts_wait_in_line_for_the_window_to_open(
    outreach: Outreach, zone: str, noon: datetime, opens: datetime
) -> None:
    outreach.clock.moment = noon
    office = SendWindow(days=frozenset({1, 2, 3, 4, 5}), start=time(9), end=time(18))
    await outreach.follow(time_zone=zone, window=office)
    commands = await outreach.save(3, channel="facebook")
    assert await outreach.claim(commands) == []
    assert await outreach.replica.states() == {"WAITING SEND_WINDOW": 3}
    assert (await outreach.job("d001")).expected_time == opens
    (gate,) = await outreach.replica.rows("select wake_time from account_gate")
    assert gate.wake_time == opens
    outreach.clock.moment = opens - timedelta(seconds=1)
    assert await outreach.turns() == []
    outreach.clock.moment = opens
    (claimed,) = await outreach.turns()
    await outreach.settle(claimed)
    # At the end of the day the others wait for the next one.
    outreach.clock.moment = opens + timedelta(hours=9)
    assert await outreach.turns() == []
    (head,) = await outreach.replica.rows("select * from post_job where expected_time > :opens", opens=opens)
    assert (head.state_reason, head.expected_time) == ("SEND_WINDOW", opens + timedelta(days=1))


async def test_a_window_is_judged_at_the_time_of_the_send(outreach: Outreach) -> None:
    """The claim runs ahead of the time of a post by some milliseconds."""
    await outreach.follow(time_zone="UTC", window=SendWindow(days=frozenset(range(7)), start=time(12), end=time(13)))
    (command,) = await outreach.save(1, channel="facebook")
    outreach.clock.moment = NOON - timedelta(milliseconds=25)
    assert len(await outreach.claim([command])) == 1


async def test_posts_of_a_disabled_account_are_blocked_until_it_is_enabled(outreach: Outreach) -> None:
    await outreach.follow(version=1, enabled=False)
    commands = await outreach.save(2, channel="facebook")
    assert await outreach.claim(commands) == []
    assert await outreach.replica.states() == {"BLOCKED ACCOUNT_DISABLED": 2}
    assert await outreach.turns() == []
    await outreach.follow(version=2)
    assert len(await outreach.turns()) == 1
    while await outreach.replica.relabel():
        pass
    assert await outreach.replica.states() == {"SENDING": 1, "READY IN_LINE": 1}


async def test_an_account_that_is_disabled_later_blocks_what_is_in_line(outreach: Outreach) -> None:
    (claimed, *_) = await outreach.claim(await outreach.save(3, channel="facebook"))
    await outreach.follow(enabled=False)
    await outreach.settle(claimed)
    assert await outreach.turns() == []
    while await outreach.replica.relabel():
        pass
    assert await outreach.replica.states() == {"PUBLISHED": 1, "BLOCKED ACCOUNT_DISABLED": 2}


async def test_posts_keep_the_spacing_of_the_schedule(outreach: Outreach) -> None:
    await outreach.follow(min_spacing=timedelta(hours=1))
    (claimed, *_) = await outreach.claim(await outreach.save(3, channel="facebook"))
    await outreach.settle(claimed)
    assert await outreach.turns() == []
    assert await outreach.replica.states() == {"PUBLISHED": 1, "WAITING SPACING": 2}
    assert (await outreach.job("d002")).parked_on == "spacing:POST"
    sent = await outreach.send_all(until=NOON + timedelta(hours=3), step=timedelta(minutes=30))
    assert sent == [NOON + timedelta(hours=1), NOON + timedelta(hours=2)]


async def test_a_parked_post_is_missed_at_its_latest_time(outreach: Outreach) -> None:
    first, second = await outreach.save(2)
    (claimed,) = await outreach.claim([first])
    await outreach.settle(claimed)
    late = replace(second, not_after=outreach.now + timedelta(minutes=2))
    assert await outreach.claim([late]) == []
    assert await outreach.pass_time(timedelta(hours=1)) == []
    assert await outreach.replica.states() == {"PUBLISHED": 1, "MISSED": 1}


async def test_a_parked_post_that_is_taken_back_is_parked_no_more(outreach: Outreach) -> None:
    first, second = await outreach.save(2)
    (claimed,) = await outreach.claim([first])
    await outreach.settle(claimed)
    await outreach.claim([second])
    await outreach.replica.write(
        "update post_job set state = 'CANCELED', next_action_time = null where draft_id = 'd001'"
    )
    assert await outreach.pass_time(timedelta(hours=1)) == []
    assert (await outreach.job("d001")).parked_on == ""
    assert await outreach.pass_time(timedelta(hours=1)) == []
    assert await outreach.replica.rows("select 1 from parked_line") == []
