"""PutHold and ListHolds of every scope, holds that end by themselves, and what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.hold_pb2 import (
    HOLD_SCOPE_ACCOUNT,
    HOLD_SCOPE_BRAND,
    HOLD_SCOPE_CAMPAIGN,
    HOLD_SCOPE_ORGANIZATION,
    HOLD_SCOPE_PROVIDER,
    HOLD_SCOPE_UNSPECIFIED,
    HoldScope,
)
from publisher_service.adapters.postgres.jobs import insert_jobs
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.clock import SystemClock
from servicekit.pg.database import Database
from servicekit.timestamps import timestamp
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub

Code = grpc.StatusCode
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
IDS = {
    HOLD_SCOPE_ACCOUNT: "page",
    HOLD_SCOPE_ORGANIZATION: "",
    HOLD_SCOPE_BRAND: "bakery",
    HOLD_SCOPE_CAMPAIGN: "spring",
    HOLD_SCOPE_PROVIDER: "sandbox",
}


def putting(scope: HoldScope = HOLD_SCOPE_BRAND, **more: Any) -> pb.PutHoldRequest:
    named: dict[str, Any] = {
        "organization_id": "acme",
        "hold_id": HoldScope.Name(scope).removeprefix("HOLD_SCOPE_").lower(),
        "scope": scope,
        "scope_id": IDS[scope],
        "reason": "wrong price",
    }
    return pb.PutHoldRequest(**named | more)


async def listed(publisher: PublisherServiceAsyncStub, **wanted: Any) -> list[str]:
    answer = await publisher.ListHolds(pb.ListHoldsRequest(**{"organization_id": "acme"} | wanted))
    assert not answer.next_page_token
    return [hold.id for hold in answer.holds]


@pytest.fixture
async def every(publisher: PublisherServiceAsyncStub, database: Database) -> PublisherServiceAsyncStub:
    """Holds of every scope, in the order of `IDS`, and one of the account `page` at the provider `sandbox`."""
    async with database.transaction() as tx:
        await tx.connection.execute(
            text("""
                insert into social_account (organization_id, id, provider, external_account_id, display_name, channels,
                    state, credentials, version, create_time, update_time)
                values ('acme', 'page', 'sandbox', 'ext', '', '{facebook}', 'CONNECTED', '', 1, :now, :now)
            """),
            {"now": NOW},
        )
    for scope in IDS:
        await publisher.PutHold(putting(scope))
    return publisher


@pytest.mark.parametrize("scope", IDS)
async def test_a_hold_shows_what_it_covers_and_until_when(
    publisher: PublisherServiceAsyncStub, scope: HoldScope
) -> None:
    end = timestamp(SystemClock().now() + timedelta(hours=1))
    put = (await publisher.PutHold(putting(scope, end_time=end, holder="ann"))).hold
    assert (put.scope, put.scope_id, put.end_time, put.holder) == (scope, IDS[scope], end, "ann")
    assert (await publisher.ListHolds(pb.ListHoldsRequest(organization_id="acme"))).holds == [put]
    request = pb.ReleaseHoldRequest(organization_id="acme", hold_id=put.id)
    assert not (await publisher.ReleaseHold(request)).hold.in_force


@pytest.mark.parametrize("scope", IDS)
async def test_a_hold_lists_a_thousand_posts_and_counts_all(
    publisher: PublisherServiceAsyncStub, database: Database, every: PublisherServiceAsyncStub, scope: HoldScope
) -> None:
    targets = [Target(social_account_id="page", channel="facebook", destination=f"{n}") for n in range(1003)]
    jobs = [
        PostJob(
            organization_id="acme",
            id=job_id("acme", "draft", target),
            draft_id="draft",
            target=target,
            state=JobState.UNKNOWN,
            in_doubt=True,
            brand_id="bakery",
            campaign_id="spring",
            next_action_time=NOW,
            create_time=NOW,
            update_time=NOW,
        )
        for target in targets
    ]
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, jobs)
    answer = await publisher.PutHold(putting(scope, hold_id="another"))
    assert list(answer.in_flight_post_job_ids) == sorted(job.id for job in jobs)[:1000]
    assert answer.in_flight_count == 1003
    for nothing in (
        putting(scope, organization_id="other"),
        putting(HOLD_SCOPE_BRAND, hold_id="b", scope_id="florist"),
        putting(HOLD_SCOPE_CAMPAIGN, hold_id="c", scope_id="autumn"),
        putting(HOLD_SCOPE_PROVIDER, hold_id="p", scope_id="elsewhere"),
    ):
        answer = await publisher.PutHold(nothing)
        assert (list(answer.in_flight_post_job_ids), answer.in_flight_count) == ([], 0)


async def test_holds_are_listed_by_what_they_cover(every: PublisherServiceAsyncStub) -> None:
    names = ["account", "organization", "brand", "campaign", "provider"]
    assert await listed(every) == names
    assert await listed(every, social_account_id="page") == ["account", "organization", "provider"]
    assert await listed(every, social_account_id="nobody") == ["organization"]
    assert await listed(every, scopes=[HOLD_SCOPE_PROVIDER, HOLD_SCOPE_BRAND]) == ["brand", "provider"]
    assert await listed(every, scope_id="bakery") == ["brand"]
    assert await listed(every, scope_id="bakery", scopes=[HOLD_SCOPE_CAMPAIGN]) == []
    assert await listed(every, social_account_id="page", scopes=[HOLD_SCOPE_PROVIDER]) == ["provider"]
    assert await listed(every, social_account_id="page", scope_id="page") == ["account"]
    assert await listed(every, organization_id="other") == []


async def test_every_filter_pages(every: PublisherServiceAsyncStub) -> None:
    for wanted in ({}, {"scopes": list(IDS)}, {"social_account_id": "page"}):
        request = pb.ListHoldsRequest(organization_id="acme", page_size=2, **wanted)
        found: list[str] = []
        while not found or request.page_token:
            answer = await every.ListHolds(request)
            found += [hold.id for hold in answer.holds]
            request.page_token = answer.next_page_token
        assert found == await listed(every, **wanted)


@pytest.mark.parametrize(
    ("request_of", "field"),
    [
        (putting(reason=""), "reason"),
        (putting(reason=" \t\n"), "reason"),
        (putting(end_time=timestamp(NOW)), "end_time"),
        (putting(scope_id=""), "scope_id"),
        (putting(HOLD_SCOPE_CAMPAIGN, scope_id=""), "scope_id"),
        (putting(HOLD_SCOPE_PROVIDER, scope_id=""), "scope_id"),
        (putting(HOLD_SCOPE_ACCOUNT, scope_id=""), "scope_id"),
        (putting(HOLD_SCOPE_ORGANIZATION, scope_id="acme"), "scope_id"),
        (putting(HOLD_SCOPE_PROVIDER, scope_id="sandbx"), "scope_id"),
        (putting(scope_id="a b"), "scope_id"),
    ],
    ids=[
        "no reason",
        "blank reason",
        "past",
        "no brand",
        "no campaign",
        "no provider",
        "no account",
        "an organization",
        "unknown provider",
        "bad id",
    ],
)
async def test_a_bad_hold_is_refused_and_changes_nothing(
    publisher: PublisherServiceAsyncStub, database: Database, request_of: pb.PutHoldRequest, field: str
) -> None:
    code, fault = await refusal_of(publisher.PutHold(request_of))
    assert (code, [violation.field for violation in fault.violations]) == (Code.INVALID_ARGUMENT, [field])
    async with database.read() as connection:
        assert (await connection.execute(text("select 1 from hold"))).all() == []


async def test_a_hold_that_covers_something_else_is_refused(every: PublisherServiceAsyncStub) -> None:
    for request in (putting(scope_id="florist"), putting(HOLD_SCOPE_CAMPAIGN, hold_id="brand", scope_id="bakery")):
        code, fault = await refusal_of(every.PutHold(request))
        assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "HOLD_SCOPE_CHANGED")
        assert fault.metadata == {"hold_id": "brand", "scope_id": "bakery"}


async def test_a_list_of_an_unknown_scope_is_refused(publisher: PublisherServiceAsyncStub) -> None:
    request = pb.ListHoldsRequest(organization_id="acme", scopes=[HOLD_SCOPE_UNSPECIFIED])
    code, fault = await refusal_of(publisher.ListHolds(request))
    assert (code, [violation.field for violation in fault.violations]) == (Code.INVALID_ARGUMENT, ["scopes[0]"])


async def test_a_repeated_put_gets_its_first_answer_even_after_its_end(
    publisher: PublisherServiceAsyncStub, database: Database
) -> None:
    request = putting(request_id="put", end_time=timestamp(SystemClock().now() + timedelta(hours=1)))
    put = await publisher.PutHold(request)
    async with database.transaction() as tx:
        await tx.connection.execute(text("update hold set in_force = false, revision = 2"))
    assert await publisher.PutHold(request) == put
