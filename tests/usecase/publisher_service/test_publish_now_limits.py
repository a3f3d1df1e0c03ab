"""PublishNow and the limits of an account: it passes over window and spacing, and over a cap only on request."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from channels import Action
from civil.windows import SendWindow
from publisher_service.adapters.postgres.safe_modes import enter
from publisher_service.domain.claim import Claimed
from publisher_service.domain.hold import Scope
from publisher_service.domain.limits import LimitDefaults
from publisher_service.domain.outcome import RateLimited
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.post_job import Target
from publisher_service.domain.safe_mode import SafeModeReason
from tests.usecase.publisher_service.outreach import NOON, Outreach
from tests.usecase.publisher_service.replica import Replica, a_draft, claims_in

INACTIVE = """
    insert into destination (organization_id, social_account_id, channel, destination, state, state_reason, failures,
        error_message, deactivate_time, version)
    values ('acme', 'page', 'email', :destination, 'INACTIVE', 'FAILURES', 5, '', :now, 1)
"""
CLOSED = SendWindow(days=frozenset(range(7)), start=time(20), end=time(21))


def urgent(name: str = "now", channel: str = "email") -> SavedDraft:
    target = Target(social_account_id="page", channel=channel, destination=f"{name}@example.com")
    return replace(a_draft(name, "page"), targets=(target,))


async def publish(outreach: Outreach, draft: SavedDraft, *, over_cap: bool = False) -> str:
    (result,) = await outreach.replica.publish(draft, over_cap=over_cap)
    return result.reason or "STARTED"


async def swept(outreach: Outreach) -> list[Claimed]:
    return claims_in(await outreach.replica.claim((await outreach.replica.recover()).due))


async def test_a_closed_window_does_not_keep_it_back(outreach: Outreach) -> None:
    await outreach.follow(time_zone="UTC", window=CLOSED)
    assert await publish(outreach, urgent()) == "STARTED"
    (claimed,) = await swept(outreach)
    assert claimed.job.is_sent_now


async def test_it_does_not_wait_for_a_window_behind_a_post_that_is_out(outreach: Outreach) -> None:
    await outreach.follow(time_zone="UTC", window=CLOSED)
    await outreach.claim(await outreach.save(3))
    assert await publish(outreach, urgent("first")) == "STARTED"
    (first,) = await swept(outreach)
    assert await publish(outreach, urgent("second")) == "STARTED"
    assert await swept(outreach) == []
    await outreach.settle(first)
    (second,) = await outreach.turns()
    assert second.job.draft_id == "second"
    await outreach.settle(second)
    assert await outreach.turns() == []
    assert (await outreach.replica.states())["WAITING SEND_WINDOW"] == 3


async def test_it_goes_out_when_the_provider_lets_it_before_the_window_opens(outreach: Outreach) -> None:
    await outreach.follow(time_zone="UTC", window=CLOSED)
    assert await publish(outreach, urgent("first")) == "STARTED"
    (first,) = await swept(outreach)
    await outreach.settle(first, RateLimited(message="", retry_after=timedelta(minutes=20)))
    await outreach.claim(await outreach.save(3))
    assert await publish(outreach, urgent("second")) == "STARTED"
    assert await swept(outreach) == []
    assert await outreach.pass_time(timedelta(minutes=19)) == []
    (next_out,) = [*await outreach.pass_time(timedelta(minutes=1)), *await swept(outreach)]
    assert next_out.job.is_sent_now


async def test_spacing_does_not_keep_it_back_and_counts_from_it(outreach: Outreach) -> None:
    (first,) = await outreach.claim(await outreach.save(1))
    await outreach.settle(first)
    assert await publish(outreach, urgent()) == "STARTED"
    (claimed,) = await swept(outreach)
    outreach.clock.moment += timedelta(minutes=2)
    await outreach.settle(claimed)
    assert await outreach.claim(await outreach.save(1, prefix="e")) == []
    assert (await outreach.job("e000")).expected_time == outreach.now + timedelta(minutes=6)


async def test_a_cap_refuses_it_unless_asked_to_be_passed_and_it_counts(outreach: Outreach) -> None:
    (first,) = await outreach.claim(await outreach.save(1))
    await outreach.settle(first)
    await outreach.replica.write("update account_action set cap = 1")
    assert await publish(outreach, urgent()) == "CAP_REACHED"
    job = await outreach.job("now")
    assert (job.state, job.publish_now) == ("PENDING", False)
    assert await publish(outreach, urgent(), over_cap=True) == "STARTED"
    (claimed,) = await swept(outreach)
    await outreach.settle(claimed)
    assert await outreach.used() == 2
    assert await publish(outreach, urgent("other")) == "CAP_REACHED"


async def test_a_cap_of_a_day_that_is_over_refuses_nothing(outreach: Outreach) -> None:
    (first,) = await outreach.claim(await outreach.save(1))
    await outreach.settle(first)
    await outreach.replica.write("update account_action set cap = 1")
    outreach.clock.moment = NOON + timedelta(days=1)
    assert await publish(outreach, urgent()) == "STARTED"
    (claimed,) = await swept(outreach)
    await outreach.settle(claimed)
    assert await publish(outreach, urgent("other")) == "CAP_REACHED"


async def test_a_disabled_account_refuses_it(outreach: Outreach) -> None:
    await outreach.follow(time_zone="UTC", enabled=False)
    assert await publish(outreach, urgent()) == "ACCOUNT_DISABLED"


@pytest.mark.parametrize(
    ("scope", "scope_id", "reason"),
    [
        ("ORGANIZATION", "", "ORGANIZATION_ON_HOLD"),
        ("PROVIDER", "sandbox", "PROVIDER_ON_HOLD"),
        ("BRAND", "brand", "BRAND_ON_HOLD"),
        ("CAMPAIGN", "campaign", "CAMPAIGN_ON_HOLD"),
    ],
)
async def test_a_wide_hold_refuses_it(outreach: Outreach, scope: str, scope_id: str, reason: str) -> None:
    draft = replace(urgent(), brand_id="brand", campaign_id="campaign")
    await outreach.replica.hold(scope_id, scope=Scope(scope))
    assert await publish(outreach, draft) == reason
    await outreach.replica.release()
    assert await publish(outreach, draft) == "STARTED"


async def test_the_end_of_a_hold_lets_it_go_before_the_window_opens(outreach: Outreach) -> None:
    await outreach.follow(time_zone="UTC", window=CLOSED)
    assert await outreach.claim(await outreach.save(1)) == []
    assert await publish(outreach, replace(urgent(), brand_id="brand")) == "STARTED"
    await outreach.replica.hold("brand", scope=Scope.BRAND)
    assert await swept(outreach) == []
    assert (await outreach.replica.states())["BLOCKED BRAND_ON_HOLD"] == 1
    await outreach.replica.release()
    await outreach.replica.free()
    (claimed,) = [*await outreach.turns(), *await swept(outreach)]
    assert claimed.job.draft_id == "now"


async def test_an_inactive_destination_refuses_it(outreach: Outreach) -> None:
    draft = urgent()
    await outreach.replica.save(draft)
    await outreach.replica.write(INACTIVE, destination=draft.targets[0].destination, now=outreach.now)
    assert await publish(outreach, draft) == "DESTINATION_INACTIVE"


async def test_nothing_is_sent_at_once_in_safe_mode(outreach: Outreach) -> None:
    database, now = outreach.replica.database, outreach.now
    await database.run(lambda tx: enter(tx, SafeModeReason.MARK_AHEAD, {}, alive=now, now=now))
    # What may be out is in doubt by then.
    await outreach.replica.write("update safe_mode set step = 'LOOKS'")
    assert await publish(outreach, urgent()) == "SAFE_MODE"
    assert await outreach.replica.states() == {"PENDING": 1}


async def test_its_month_is_that_of_the_account(outreach: Outreach) -> None:
    await outreach.follow(time_zone="Pacific/Auckland")
    outreach.clock.moment = datetime(2026, 3, 31, 20, tzinfo=UTC)
    assert await publish(outreach, urgent()) == "STARTED"
    assert (await outreach.job("now")).target_month == "2026-04-01"


async def test_the_default_caps_of_the_process_count(outreach: Outreach, database_url: str) -> None:
    (first,) = await outreach.claim(await outreach.save(1))
    await outreach.settle(first)
    strict = Replica(database_url, clock=outreach.clock, limits=LimitDefaults(caps={Action.EMAIL: 1}))
    try:
        (result,) = await strict.publish(urgent())
    finally:
        await strict.database.dispose()
    assert result.reason == "CAP_REACHED"
