"""ListActivity and GetUsage as a client sees them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.publisher.v1 import post_job_pb2
from postflow.publisher.v1 import social_account_service_pb2 as pb
from servicekit.clock import SystemClock
from servicekit.pg.database import Database
from servicekit.timestamps import timestamp
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceAsyncStub

Code = grpc.StatusCode
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


async def write(database: Database, statement: str, **values: object) -> None:
    async with database.transaction() as tx:
        await tx.connection.execute(text(statement), values)


async def connect(accounts: SocialAccountServiceAsyncStub) -> None:
    await accounts.ConnectAccount(
        pb.ConnectAccountRequest(
            organization_id="acme",
            social_account_id="page",
            provider="sandbox",
            external_account_id="ext-page",
            credentials=pb.Credentials(access_token="sandbox-ok"),
        )
    )


async def log(database: Database, *entries: tuple[int, str, str], start: datetime = START) -> None:
    for minute, action, outcome in entries:
        await write(
            database,
            "insert into activity (organization_id, social_account_id, id, post_job_id, action, outcome, create_time,"
            " run) values ('acme', 'page', :id, :job, :action, :outcome, :time, 2)",
            id=f"a{minute}",
            job=f"job-{minute}",
            action=action,
            outcome=outcome,
            time=start + timedelta(minutes=minute),
        )


async def listed(accounts: SocialAccountServiceAsyncStub, **wanted: Any) -> list[str]:
    request = pb.ListActivityRequest(organization_id="acme", social_account_id="page", **wanted)
    return [each.id for each in (await accounts.ListActivity(request)).activities]


async def usages(accounts: SocialAccountServiceAsyncStub) -> list[tuple[int, int, int | None, bool, int]]:
    answer = await accounts.GetUsage(pb.GetUsageRequest(organization_id="acme", social_account_id="page"))
    return [
        (each.action, each.used, each.cap if each.HasField("cap") else None, each.is_override, each.waiting)
        for each in answer.usages
    ]


async def test_activities_are_listed_newest_first(accounts: SocialAccountServiceAsyncStub, database: Database) -> None:
    await connect(accounts)
    await log(database, (1, "POST", "SUCCESS"), (3, "EMAIL", "UNKNOWN"), (2, "EMAIL", "ABSENT"))
    request = pb.ListActivityRequest(organization_id="acme", social_account_id="page")
    first, *others = (await accounts.ListActivity(request)).activities
    assert first == pb.Activity(
        id="a3",
        action=post_job_pb2.ACTION_EMAIL,
        outcome=pb.ACTIVITY_OUTCOME_UNKNOWN,
        post_job_id="job-3",
        run=2,
        create_time=timestamp(START + timedelta(minutes=3)),
    )
    assert [each.id for each in others] == ["a2", "a1"]


async def test_activities_are_selected_by_action_outcome_and_time(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    await connect(accounts)
    await log(database, (1, "POST", "SUCCESS"), (2, "POST", "FAILED"), (3, "EMAIL", "SUCCESS"), (4, "EMAIL", "ABSENT"))
    assert await listed(accounts, actions=[post_job_pb2.ACTION_EMAIL]) == ["a4", "a3"]
    assert await listed(accounts, outcomes=[pb.ACTIVITY_OUTCOME_SUCCESS]) == ["a3", "a1"]
    since, until = timestamp(START + timedelta(minutes=2)), timestamp(START + timedelta(minutes=4))
    assert await listed(accounts, start_time=since) == ["a4", "a3", "a2"]
    assert await listed(accounts, start_time=since, end_time=until) == ["a3", "a2"]


async def test_activities_are_paged(accounts: SocialAccountServiceAsyncStub, database: Database) -> None:
    await connect(accounts)
    await log(database, *((minute, "POST", "SUCCESS") for minute in range(5)))
    request, found = pb.ListActivityRequest(organization_id="acme", social_account_id="page", page_size=2), []
    while True:
        answer = await accounts.ListActivity(request)
        found += [each.id for each in answer.activities]
        if not answer.next_page_token:
            break
        request.page_token = answer.next_page_token
    assert found == ["a4", "a3", "a2", "a1", "a0"]


async def test_a_page_token_of_another_question_is_refused(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    await connect(accounts)
    await log(database, (1, "POST", "SUCCESS"), (2, "POST", "SUCCESS"))
    request = pb.ListActivityRequest(organization_id="acme", social_account_id="page", page_size=1)
    request.page_token = (await accounts.ListActivity(request)).next_page_token
    request.actions.append(post_job_pb2.ACTION_EMAIL)
    code, _ = await refusal_of(accounts.ListActivity(request))
    assert code is Code.INVALID_ARGUMENT


async def test_a_time_range_that_is_empty_is_refused(accounts: SocialAccountServiceAsyncStub) -> None:
    await connect(accounts)
    request = pb.ListActivityRequest(
        organization_id="acme", social_account_id="page", start_time=timestamp(START), end_time=timestamp(START)
    )
    code, fault = await refusal_of(accounts.ListActivity(request))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "INVALID_FIELD")


@pytest.mark.parametrize("where", [("acme", "other"), ("other", "page")])
async def test_unknown_accounts_and_those_of_others_are_not_found(
    accounts: SocialAccountServiceAsyncStub, where: tuple[str, str]
) -> None:
    await connect(accounts)
    organization, account = where
    calls = (
        accounts.ListActivity(pb.ListActivityRequest(organization_id=organization, social_account_id=account)),
        accounts.GetUsage(pb.GetUsageRequest(organization_id=organization, social_account_id=account)),
    )
    for call in calls:
        code, fault = await refusal_of(call)
        assert (code, fault.reason, fault.metadata) == (
            Code.NOT_FOUND,
            "ACCOUNT_NOT_FOUND",
            {"social_account_id": account},
        )


async def test_an_unused_account_shows_the_default_caps(accounts: SocialAccountServiceAsyncStub) -> None:
    await connect(accounts)
    assert await usages(accounts) == [
        (post_job_pb2.ACTION_EMAIL, 0, 20, False, 0),
        (post_job_pb2.ACTION_MESSAGE, 0, 50, False, 0),
        (post_job_pb2.ACTION_CONNECTION_REQUEST, 0, 20, False, 0),
    ]


async def test_usage_names_the_local_day_and_its_end(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    await connect(accounts)
    await write(
        database,
        "insert into account_schedule (organization_id, social_account_id, version, deleted, time_zone, enabled)"
        " values ('acme', 'page', 1, false, 'Pacific/Kiritimati', true)",
    )
    answer = await accounts.GetUsage(pb.GetUsageRequest(organization_id="acme", social_account_id="page"))
    ends = {each.reset_time.ToDatetime(tzinfo=UTC) for each in answer.usages}
    assert answer.time_zone == "Pacific/Kiritimati"
    assert {(end + timedelta(hours=14) - timedelta(seconds=1)).date().isoformat() for end in ends} == {
        answer.local_date
    }


async def test_usage_counts_reservations_and_what_posts_were_sent(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    await connect(accounts)
    now = SystemClock().now().replace(hour=12)
    await log(database, (1, "POST", "SUCCESS"), (2, "POST", "UNKNOWN"), (3, "POST", "FAILED"), start=now)
    await write(
        database,
        "insert into reservation values ('acme', 'j1', 1, 1, 'page', 'EMAIL', :now), ('acme', 'j2', 1, 1, 'page',"
        " 'EMAIL', cast(:now as timestamptz) - interval '2 days')",
        now=now,
    )
    await write(
        database,
        "insert into account_action (organization_id, social_account_id, action, cap)"
        " values ('acme', 'page', 'EMAIL', 7)",
    )
    assert (await usages(accounts))[:2] == [
        (post_job_pb2.ACTION_POST, 2, None, False, 0),
        (post_job_pb2.ACTION_EMAIL, 1, 7, True, 0),
    ]
