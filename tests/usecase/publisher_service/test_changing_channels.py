"""Posts to a channel that their account does not offer wait for it, and no post loses its channel."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.adapters.providers.provider import Providers
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.update_account import UpdateAccount
from publisher_service.application.wake_parked import WakeParked
from publisher_service.domain.account import AccountChange, Connection, SocialAccount
from publisher_service.domain.claim import Command
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.limits import DEFAULTS
from servicekit.faults import Refused
from servicekit.ids import Uuid7Source
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from tests.usecase.publisher_service.replica import (
    CHANNELS,
    Replica,
    TrustingAdapter,
    a_command,
    a_draft,
    a_sent,
    claims_in,
)

Change = Callable[..., Awaitable[SocialAccount]]

BOTH = ("facebook", "mastodon")


async def update(replica: Replica, *channels: str) -> SocialAccount:
    use_case = UpdateAccount(
        ledger=RequestLedger(replica.database, replica.clock),
        outbox=Outbox(Uuid7Source(), lambda rows: None),
        providers=Providers([TrustingAdapter()], replica.system),
        defaults=DEFAULTS,
        on_caps_changed=lambda: None,
    )
    change = AccountChange(organization_id="acme", account_id="page", channels=channels)
    account: SocialAccount = await use_case(call("UpdateAccount"), change)
    return account


async def connect(replica: Replica, *channels: str) -> SocialAccount:
    wanted = Connection(
        organization_id="acme",
        account_id="page",
        provider="sandbox",
        external_account_id="ext-page",
        display_name="",
        channels=channels,
        credentials=Credentials(access_token="another"),
    )
    connect_account: ConnectAccount = replica.connect_account
    account: SocialAccount = await connect_account(call("ConnectAccount"), wanted)
    return account


async def save(replica: Replica, channel: str, *names: str) -> Sequence[Command]:
    drafts = [a_draft(name, "page") for name in names]
    drafts = [replace(each, targets=(replace(each.targets[0], channel=channel),)) for each in drafts]
    await replica.save(*drafts)
    return [replace(a_command(draft.draft_id, "page"), target=draft.targets[0]) for draft in drafts]


def waking(replica: Replica) -> WakeParked:
    outbox = Outbox(Uuid7Source(), lambda rows: None)
    return WakeParked(database=replica.database, clock=replica.clock, outbox=outbox, wake_lines=lambda: None)


@pytest.fixture
async def page(replica: Replica) -> Replica:
    await replica.connect("page")
    await update(replica, "facebook")
    return replica


async def test_a_post_to_a_channel_not_offered_waits_and_others_pass(page: Replica) -> None:
    commands = [*await save(page, "mastodon", "m"), *await save(page, "facebook", "f")]
    await page.claim(commands)
    (claimed,) = await page.next_in_line()
    assert claimed.job.draft_id == "f"
    (job,) = await page.rows("select * from post_job where draft_id = 'm'")
    assert (job.state, job.state_reason, job.parked_on) == ("BLOCKED", "CHANNEL_NOT_OFFERED", "offer:mastodon")
    assert job.next_action_time == job.not_after


async def test_posts_go_once_the_account_offers_their_channel(page: Replica) -> None:
    commands = await save(page, "mastodon", *(f"m{number}" for number in range(120)))
    assert claims_in(await page.claim(commands)) == []
    wake = waking(page)
    assert not await wake()
    await update(page, *BOTH)
    while await wake():
        pass
    assert await page.states() == {"READY IN_LINE": 120}
    assert await page.rows("select 1 from parked_line") == []
    assert len(await page.next_in_line()) == 1


async def test_a_connection_that_offers_the_channel_releases_its_posts(page: Replica) -> None:
    await page.claim(await save(page, "mastodon", "m"))
    await connect(page, *BOTH)
    while await waking(page)():
        pass
    assert await page.states() == {"READY IN_LINE": 1}


async def test_a_post_that_waits_for_its_channel_is_missed_at_its_latest_time(page: Replica) -> None:
    (command,) = await save(page, "mastodon", "m")
    (row,) = await page.rows("select clock_timestamp() as now")
    await page.claim([replace(command, not_after=row.now + timedelta(hours=1))])
    await page.write("update post_job set not_after = :now, next_action_time = :now", now=row.now)
    found = await page.recover()
    await page.claim(found.due)
    assert await page.states() == {"MISSED": 1}


async def test_a_connection_without_channels_keeps_those_of_the_account(page: Replica) -> None:
    assert (await connect(page)).channels == ("facebook",)


async def test_a_new_account_without_channels_offers_all(replica: Replica) -> None:
    assert set((await connect(replica)).channels) == set(CHANNELS)


@pytest.mark.parametrize("change", [update, connect])
async def test_no_channel_is_taken_from_posts_that_have_not_ended(page: Replica, change: Change) -> None:
    await save(page, "facebook", "f")
    with pytest.raises(Refused) as refused:
        await change(page, "mastodon")
    assert refused.value.reason == "CHANNEL_IN_USE"
    assert refused.value.metadata["channel"] == "facebook"
    (row,) = await page.rows("select channels from social_account")
    assert row.channels == ["facebook"]


async def test_no_post_is_left_behind_by_claims_beside_changes(page: Replica, another: Replica) -> None:
    commands = await save(page, "mastodon", *(f"m{number}" for number in range(60)))
    wake = waking(another)

    async def claim(mine: Replica) -> None:
        for command in random.sample(commands, len(commands)):
            await mine.settle([a_sent(each) for each in claims_in(await mine.claim([command]))])

    async def change() -> None:
        # As a process that knows no such rule takes the channel away.
        for _ in range(15):
            await another.write("update social_account set channels = '{facebook}' where id = 'page'")
            await asyncio.sleep(0)
            await update(another, *BOTH)
            await wake()

    async with asyncio.TaskGroup() as group:
        group.create_task(claim(page))
        group.create_task(claim(another))
        group.create_task(change())
    while await wake():
        pass
    while claimed := await page.next_in_line():
        await page.settle([a_sent(each) for each in claimed])
    left = set(await page.states())
    assert left <= {"PUBLISHED", "PENDING"}, left
