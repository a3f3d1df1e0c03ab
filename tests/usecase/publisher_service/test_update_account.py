"""UpdateAccount beside claims: a cap is obeyed by the next one, and what waited for a raised one goes at once."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import pytest

from channels import Action
from publisher_service.adapters.providers.provider import Providers
from publisher_service.application.update_account import UpdateAccount
from publisher_service.domain.account import AccountChange, SocialAccount
from publisher_service.domain.limits import DEFAULTS
from publisher_service.domain.outcome import NotBegun, Outcome, Rejected
from servicekit.faults import Refused
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from tests.usecase.publisher_service.outreach import SPACING, Outreach
from tests.usecase.publisher_service.replica import Replica, TrustingAdapter


async def update(
    replica: Replica, *, caps: Mapping[Action, int] | None = None, name: str | None = None, lower: bool = False
) -> SocialAccount:
    use_case = UpdateAccount(
        ledger=RequestLedger(replica.database, replica.clock),
        outbox=Outbox(Uuid7Source(), lambda rows: None),
        providers=Providers([TrustingAdapter()], replica.system),
        defaults=DEFAULTS,
        on_caps_changed=lambda: None,
    )
    change = AccountChange(
        organization_id="acme", account_id="page", display_name=name, daily_caps=caps, allow_below_used=lower
    )
    account: SocialAccount = await use_case(call("UpdateAccount"), change)
    return account


async def send(outreach: Outreach, count: int, *, prefix: str = "d") -> None:
    for command in await outreach.save(count, prefix=prefix):
        for claimed in await outreach.claim([command]):
            await outreach.settle(claimed)
        outreach.clock.moment += SPACING


async def test_a_lowered_cap_is_obeyed_by_the_next_claim(outreach: Outreach) -> None:
    await send(outreach, 2)
    await update(outreach.replica, caps={Action.EMAIL: 2})
    (command,) = await outreach.save(1, prefix="over")
    assert await outreach.claim([command]) == []
    job = await outreach.job("over000")
    assert (job.state, job.state_reason, job.parked_on) == ("WAITING", "DAILY_CAP", "action:EMAIL")


async def test_a_raised_cap_lets_go_at_once_what_waited(outreach: Outreach) -> None:
    await update(outreach.replica, caps={Action.EMAIL: 1})
    await send(outreach, 3)
    assert await outreach.replica.states() == {"PUBLISHED": 1, "WAITING DAILY_CAP": 2}
    await update(outreach.replica, caps={Action.EMAIL: 2})
    (claimed,) = await outreach.pass_time(timedelta(0))
    await outreach.settle(claimed)
    assert await outreach.pass_time(SPACING) == []
    assert await outreach.used() == 2


async def test_posts_have_a_cap_once_the_account_sets_one(outreach: Outreach) -> None:
    outreach.channel = "facebook"
    await update(outreach.replica, caps={Action.POST: 1})
    await send(outreach, 2)
    assert await outreach.replica.states() == {"PUBLISHED": 1, "WAITING DAILY_CAP": 1}
    await update(outreach.replica, caps={})
    assert len(await outreach.pass_time(timedelta(0))) == 1


async def test_a_new_cap_counts_the_posts_of_the_day(outreach: Outreach) -> None:
    outreach.channel = "facebook"
    await send(outreach, 1)
    outreach.clock.moment += timedelta(days=1)
    await send(outreach, 2, prefix="e")
    with pytest.raises(Refused) as refusal:
        await update(outreach.replica, caps={Action.POST: 1})
    assert refusal.value.reason == "CAP_BELOW_USED"
    await update(outreach.replica, caps={Action.POST: 3})
    assert await outreach.used("POST") == 2
    await send(outreach, 2, prefix="f")
    assert await outreach.used("POST") == 3
    assert await outreach.replica.states() == {"PUBLISHED": 4, "WAITING DAILY_CAP": 1}


async def test_a_cap_that_is_set_again_counts_what_went_out_in_between(outreach: Outreach) -> None:
    outreach.channel = "facebook"
    await update(outreach.replica, caps={Action.POST: 2})
    await send(outreach, 1)
    await update(outreach.replica, caps={})
    await send(outreach, 2, prefix="e")
    await update(outreach.replica, caps={Action.POST: 4})
    await send(outreach, 2, prefix="f")
    assert await outreach.used("POST") == 4
    assert await outreach.replica.states() == {"PUBLISHED": 4, "WAITING DAILY_CAP": 1}


@pytest.mark.parametrize(
    ("outcome", "used"),
    [(None, 1), (NotBegun(reason="STOPPING", message=""), 0), (Rejected(reason="NO", message=""), 0)],
)
async def test_a_new_cap_counts_what_is_being_sent_until_it_has_had_no_effect(
    outreach: Outreach, outcome: Outcome | None, used: int
) -> None:
    outreach.channel = "facebook"
    (claimed,) = await outreach.claim(await outreach.save(1))
    await update(outreach.replica, caps={Action.POST: 1})
    assert await outreach.used("POST") == 1
    await outreach.settle(claimed, outcome)
    assert await outreach.used("POST") == used


async def test_a_new_cap_counts_nothing_of_another_action(outreach: Outreach) -> None:
    (claimed,) = await outreach.claim(await outreach.save(1))
    await update(outreach.replica, caps={Action.POST: 1})
    assert (await outreach.used("POST"), await outreach.used()) == (0, 1)
    await outreach.settle(claimed)


async def test_a_spacing_that_begins_during_a_send_counts_from_its_end(outreach: Outreach) -> None:
    outreach.channel = "facebook"
    (claimed,) = await outreach.claim(await outreach.save(1))
    await outreach.follow(time_zone="UTC", min_spacing=timedelta(hours=1))
    await outreach.settle(claimed)
    assert await outreach.claim(await outreach.save(1, prefix="e")) == []
    assert await outreach.turns() == []
    assert (await outreach.job("e000")).state_reason == "SPACING"


async def test_posts_that_wait_for_their_spacing_have_their_place_of_the_cap(outreach: Outreach) -> None:
    outreach.channel = "facebook"
    await outreach.follow(time_zone="UTC", min_spacing=timedelta(hours=1))
    await update(outreach.replica, caps={Action.POST: 1})
    await send(outreach, 8)
    await update(outreach.replica, caps={Action.POST: 3})
    for _ in range(5):
        assert await outreach.pass_time(timedelta(minutes=1)) == []
        await outreach.replica.write("update parked_line set wake_time = :now", now=outreach.now)
    assert await outreach.replica.states() == {"PUBLISHED": 1, "WAITING SPACING": 2, "WAITING DAILY_CAP": 5}


async def test_the_default_may_be_below_what_is_used_too(outreach: Outreach) -> None:
    await update(outreach.replica, caps={Action.EMAIL: 30})
    await send(outreach, 1)
    await outreach.replica.write("update account_action set used = 25")
    with pytest.raises(Refused) as refusal:
        await update(outreach.replica, caps={})
    assert refusal.value.reason == "CAP_BELOW_USED"
    assert (await update(outreach.replica, caps={}, lower=True)).daily_caps == {}


@pytest.mark.parametrize("time_zone", ["UTC", "Asia/Tokyo"])
async def test_a_cap_below_what_is_used_is_refused_after_a_schedule_change(outreach: Outreach, time_zone: str) -> None:
    await send(outreach, 3)
    await outreach.follow(time_zone=time_zone)
    with pytest.raises(Refused) as refused:
        await update(outreach.replica, caps={Action.EMAIL: 2})
    assert (refused.value.reason, refused.value.metadata["used"]) == ("CAP_BELOW_USED", "3")
    assert (await update(outreach.replica, caps={Action.EMAIL: 3})).daily_caps == {Action.EMAIL: 3}


async def test_concurrent_changes_each_take_a_version(outreach: Outreach) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(12):
            caps = {Action.EMAIL: number + 1}
            group.create_task(
                update(outreach.replica, caps=caps) if number % 2 else update(outreach.replica, name=f"n{number}")
            )
    (row,) = await outreach.replica.rows("select version from social_account")
    assert row.version == 13
