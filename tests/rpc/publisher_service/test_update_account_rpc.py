"""UpdateAccount as its callers see it: what changes, what stays, and each refusal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

import channels
from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1 import publisher_events_pb2, social_account_pb2
from postflow.publisher.v1 import social_account_service_pb2 as pb
from postflow.publisher.v1.post_job_pb2 import ACTION_CONNECTION_REQUEST, ACTION_EMAIL, ACTION_MESSAGE, ACTION_POST
from publisher_service.adapters.postgres.jobs import insert_jobs
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.pg.database import Database
from testkit.refusals import fields_at_fault, refusal_of
from tests.rpc.publisher_service.raw import raw_refusal

if TYPE_CHECKING:
    from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceAsyncStub

Code = grpc.StatusCode
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CANARY = "sandbox-canary-8"
PAGE = pb.GetAccountRequest(organization_id="acme", social_account_id="page")


def updating(
    *, names: list[str] | None = None, caps: Mapping[Any, int] | list[tuple[int, int]] | None = None, **more: Any
) -> pb.UpdateAccountRequest:
    request = pb.UpdateAccountRequest(**{"organization_id": "acme", "social_account_id": "page"} | more)
    if names is not None:
        request.channels.CopyFrom(pb.ChannelList(channels=names))
    if caps is not None:
        pairs = list(caps.items()) if isinstance(caps, Mapping) else caps
        request.daily_caps.CopyFrom(pb.DailyCapList(daily_caps=map(_cap, pairs)))
    return request


def _cap(pair: tuple[int, int]) -> social_account_pb2.DailyCap:
    return social_account_pb2.DailyCap(action=pair[0], most=pair[1])  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
async def page(accounts: SocialAccountServiceAsyncStub) -> social_account_pb2.SocialAccount:
    request = pb.ConnectAccountRequest(
        organization_id="acme",
        social_account_id="page",
        provider="sandbox",
        external_account_id="ext-1",
        display_name="Page",
        channels=["facebook", "email"],
        credentials=pb.Credentials(access_token=CANARY),
    )
    return (await accounts.ConnectAccount(request)).social_account


async def use(database: Database, action: str, used: int, *, hours: int = 1) -> None:
    """Has a claim count sends of a day that ends in so many hours."""
    async with database.transaction() as tx:
        await tx.connection.execute(
            text("""
                insert into account_action (organization_id, social_account_id, action, used, day_start, day_end)
                values ('acme', 'page', :action, :used, now() - interval '2 days',
                    now() + cast(:hours as integer) * interval '1 hour')
            """),
            {"action": action, "used": used, "hours": hours},
        )


async def announced(database: Database) -> list[tuple[str, social_account_pb2.SocialAccount]]:
    async with database.read() as connection:
        rows = await connection.execute(text("select payload from outbox order by position"))
        events = [event for row in rows for event in bus_pb2.Envelope.FromString(row.payload).events]
    found = []
    for event in events:
        kind = getattr(publisher_events_pb2, event.type.rpartition(".")[2])
        found.append((kind.__name__, kind.FromString(event.payload).social_account))
    return found


async def test_what_is_absent_stays(
    accounts: SocialAccountServiceAsyncStub, page: social_account_pb2.SocialAccount, database: Database
) -> None:
    after = (await accounts.UpdateAccount(updating(display_name=""))).social_account
    assert (after.display_name, list(after.channels), after.version) == ("", list(page.channels), 2)
    assert not after.daily_caps
    assert after.etag != page.etag
    after = (await accounts.UpdateAccount(updating(caps={ACTION_EMAIL: 5}, etag=after.etag))).social_account
    after = (await accounts.UpdateAccount(updating(names=[" Facebook", "email", "instagram"]))).social_account
    assert after.channels == ["facebook", "email", "instagram_feed"]
    assert after.daily_caps == [social_account_pb2.DailyCap(action=ACTION_EMAIL, most=5)]
    assert (await accounts.GetAccount(PAGE)).social_account == after
    listed = await accounts.ListAccounts(pb.ListAccountsRequest(organization_id="acme"))
    assert listed.social_accounts == [after]
    assert (await announced(database))[-1] == ("SocialAccountConnected", after)
    assert CANARY not in repr(await announced(database))


async def test_no_change_is_no_new_version(accounts: SocialAccountServiceAsyncStub, database: Database) -> None:
    answer = await accounts.UpdateAccount(updating(display_name="Page", names=["facebook", "email"], caps={}))
    assert (answer.social_account.version, len(await announced(database))) == (1, 1)


async def test_a_repeated_request_gets_the_first_answer(accounts: SocialAccountServiceAsyncStub) -> None:
    first = await accounts.UpdateAccount(updating(display_name="a", request_id="r1"))
    await accounts.UpdateAccount(updating(display_name="b"))
    assert await accounts.UpdateAccount(updating(display_name="a", request_id="r1")) == first
    assert (await accounts.GetAccount(PAGE)).social_account.display_name == "b"


async def test_no_channels_are_all_that_the_provider_offers(accounts: SocialAccountServiceAsyncStub) -> None:
    after = (await accounts.UpdateAccount(updating(names=[]))).social_account
    assert set(after.channels) <= set(channels.KNOWN)
    assert len(after.channels) > 5


async def test_caps_are_replaced_together_and_shown_in_order(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    first = {ACTION_MESSAGE: 9, ACTION_POST: 3, ACTION_EMAIL: 0}
    shown = (await accounts.UpdateAccount(updating(caps=first))).social_account.daily_caps
    assert [(each.action, each.most) for each in shown] == [(ACTION_POST, 3), (ACTION_EMAIL, 0), (ACTION_MESSAGE, 9)]
    async with database.read() as connection:
        assert (await connection.execute(text("select limited from account_gate"))).scalar_one()
    after = (await accounts.UpdateAccount(updating(caps={ACTION_CONNECTION_REQUEST: 4}))).social_account
    assert [(each.action, each.most) for each in after.daily_caps] == [(ACTION_CONNECTION_REQUEST, 4)]
    assert not (await accounts.UpdateAccount(updating(caps={}))).social_account.daily_caps
    async with database.read() as connection:
        assert not (await connection.execute(text("select limited from account_gate"))).scalar_one()


async def test_a_cap_below_what_is_used_needs_a_word(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    await use(database, "EMAIL", 7)
    before = (await accounts.GetAccount(PAGE)).social_account
    code, fault = await refusal_of(accounts.UpdateAccount(updating(caps={ACTION_EMAIL: 6}, display_name="b")))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "CAP_BELOW_USED")
    assert fault.metadata == {"action": "EMAIL", "cap": "6", "used": "7"}
    assert (await accounts.GetAccount(PAGE)).social_account == before
    await accounts.UpdateAccount(updating(caps={ACTION_EMAIL: 7}))
    await accounts.UpdateAccount(updating(caps={ACTION_EMAIL: 6}, allow_below_used=True))
    after = await accounts.UpdateAccount(updating(caps={ACTION_EMAIL: 6, ACTION_MESSAGE: 1}))
    assert len(after.social_account.daily_caps) == 2, "a cap that does not change is not asked about"


async def test_what_was_used_on_another_day_does_not_count(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    await use(database, "EMAIL", 7, hours=-1)
    await accounts.UpdateAccount(updating(caps={ACTION_EMAIL: 1}))


async def test_a_changed_cap_wakes_what_waits_for_it(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    async with database.transaction() as tx:
        await tx.connection.execute(
            text("""
                insert into parked_line (organization_id, social_account_id, parked_on, wake_time)
                select 'acme', account, parked_on, now() + interval '9 hours'
                from unnest(array['page', 'other']) account,
                    unnest(array['action:EMAIL', 'action:MESSAGE', 'spacing:POST']) parked_on
            """)
        )
    await accounts.UpdateAccount(updating(caps={ACTION_EMAIL: 90}))
    async with database.read() as connection:
        rows = await connection.execute(text("select * from parked_line where wake_time <= now()"))
        assert [(row.social_account_id, row.parked_on) for row in rows] == [("page", "action:EMAIL")]


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.NEEDS_ATTENTION])
async def test_a_channel_of_an_open_post_stays(
    accounts: SocialAccountServiceAsyncStub, database: Database, state: JobState
) -> None:
    await _post(database, "email", state)
    code, fault = await refusal_of(accounts.UpdateAccount(updating(names=["facebook"])))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "CHANNEL_IN_USE")
    assert fault.metadata["channel"] == "email"
    assert (await accounts.UpdateAccount(updating(names=["email"]))).social_account.channels == ["email"]


async def test_a_channel_of_ended_posts_may_go(accounts: SocialAccountServiceAsyncStub, database: Database) -> None:
    await _post(database, "email", JobState.CANCELED)
    assert (await accounts.UpdateAccount(updating(names=["facebook"]))).social_account.channels == ["facebook"]


async def _post(database: Database, channel: str, state: JobState) -> None:
    target = Target(social_account_id="page", channel=channel)
    job = PostJob(
        organization_id="acme",
        id=job_id("acme", "d1", target),
        draft_id="d1",
        target=target,
        state=state,
        create_time=NOW,
        update_time=NOW,
    )
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [job])


async def test_a_stale_etag_is_aborted(
    accounts: SocialAccountServiceAsyncStub, page: social_account_pb2.SocialAccount
) -> None:
    now = (await accounts.UpdateAccount(updating(display_name="b", etag=page.etag))).social_account
    code, fault = await refusal_of(accounts.UpdateAccount(updating(display_name="c", etag=page.etag)))
    assert (code, fault.reason, fault.metadata["etag"]) == (Code.ABORTED, "ETAG_MISMATCH", now.etag)
    assert (await accounts.GetAccount(PAGE)).social_account == now


async def test_a_disconnection_keeps_caps_and_etag(accounts: SocialAccountServiceAsyncStub, database: Database) -> None:
    before = (await accounts.UpdateAccount(updating(caps={ACTION_EMAIL: 4}))).social_account
    gone = await accounts.DisconnectAccount(
        pb.DisconnectAccountRequest(organization_id="acme", social_account_id="page", note="n")
    )
    assert (gone.social_account.etag, gone.social_account.daily_caps) == (before.etag, before.daily_caps)
    after = (await accounts.UpdateAccount(updating(display_name="b", etag=before.etag))).social_account
    assert (after.state, after.error_message) == (social_account_pb2.SOCIAL_ACCOUNT_STATE_DISCONNECTED, "n")
    assert (await announced(database))[-1] == ("SocialAccountDisconnected", after)


async def test_a_foreign_account_is_refused_like_an_unknown_one(accounts: SocialAccountServiceAsyncStub) -> None:
    code, fault = await refusal_of(accounts.UpdateAccount(updating(organization_id="other", display_name="b")))
    assert (code, fault.reason) == (Code.NOT_FOUND, "ACCOUNT_NOT_FOUND")
    foreign = await raw_refusal(accounts.UpdateAccount(updating(organization_id="other", display_name="b")))
    assert foreign == await raw_refusal(accounts.UpdateAccount(updating(organization_id="nobody", display_name="b")))


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (updating(caps=[(ACTION_EMAIL, 1), (ACTION_EMAIL, 2)]), "daily_caps.daily_caps[1].action"),
        (updating(caps=[(0, 1)]), "daily_caps.daily_caps[0].action"),
        (updating(caps=[(77, 1)]), "daily_caps.daily_caps[0].action"),
        (updating(caps=[(ACTION_EMAIL, -1)]), "daily_caps.daily_caps[0].most"),
        (updating(caps=[(ACTION_EMAIL, 1_000_001)]), "daily_caps.daily_caps[0].most"),
        (updating(names=["email", "fax"]), "channels.channels[1]"),
        (updating(display_name="n" * 201), "display_name"),
        (updating(social_account_id=""), "social_account_id"),
        (updating(etag="e" * 65), "etag"),
    ],
)
async def test_an_invalid_change_names_its_field(
    accounts: SocialAccountServiceAsyncStub, request_: pb.UpdateAccountRequest, field: str
) -> None:
    code, fault = await refusal_of(accounts.UpdateAccount(request_))
    assert (code, fields_at_fault(fault)) == (Code.INVALID_ARGUMENT, [field])
