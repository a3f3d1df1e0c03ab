"""PutHold, ReleaseHold and ListHolds as Queue and operators see them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.hold_pb2 import HOLD_SCOPE_ACCOUNT, HOLD_SCOPE_UNSPECIFIED
from publisher_service.adapters.postgres.jobs import insert_jobs
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.pg.database import Database
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub

Code = grpc.StatusCode
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def putting(hold: str = "h1", account: str = "page", **more: Any) -> pb.PutHoldRequest:
    named: dict[str, Any] = {
        "organization_id": "acme",
        "scope": HOLD_SCOPE_ACCOUNT,
        "scope_id": account,
        "reason": "wrong price",
    }
    return pb.PutHoldRequest(hold_id=hold, **named | more)


def releasing(hold: str = "h1", **more: Any) -> pb.ReleaseHoldRequest:
    return pb.ReleaseHoldRequest(hold_id=hold, **{"organization_id": "acme"} | more)


async def listed(publisher: PublisherServiceAsyncStub, **wanted: Any) -> list[str]:
    answer = await publisher.ListHolds(pb.ListHoldsRequest(**{"organization_id": "acme"} | wanted))
    assert not answer.next_page_token
    return [hold.id for hold in answer.holds]


async def test_a_hold_says_who_and_why_until_it_is_released(publisher: PublisherServiceAsyncStub) -> None:
    put = (await publisher.PutHold(putting(reason="wrong price", holder="ann"))).hold
    assert (put.id, put.scope, put.scope_id, put.revision) == ("h1", HOLD_SCOPE_ACCOUNT, "page", 1)
    assert (put.reason, put.holder, put.in_force) == ("wrong price", "ann", True)
    assert (await publisher.ListHolds(pb.ListHoldsRequest(organization_id="acme"))).holds == [put]
    released = (await publisher.ReleaseHold(releasing())).hold
    assert (released.in_force, released.revision, released.holder) == (False, 2, "ann")
    assert (released.create_time, await listed(publisher)) == (put.create_time, [])


async def test_a_hold_lists_what_may_be_out(publisher: PublisherServiceAsyncStub, database: Database) -> None:
    target = Target(social_account_id="page", channel="facebook")
    job = PostJob(
        organization_id="acme",
        id=job_id("acme", "draft", target),
        draft_id="draft",
        target=target,
        state=JobState.UNKNOWN,
        in_doubt=True,
        next_action_time=NOW,
        create_time=NOW,
        update_time=NOW,
    )
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [job])
    assert list((await publisher.PutHold(putting())).in_flight_post_job_ids) == [job.id]
    assert list((await publisher.PutHold(putting(organization_id="other"))).in_flight_post_job_ids) == []


async def test_an_older_revision_is_superseded(publisher: PublisherServiceAsyncStub) -> None:
    await publisher.PutHold(putting(revision=5))
    for call in (publisher.PutHold(putting(revision=4)), publisher.ReleaseHold(releasing(revision=4))):
        code, fault = await refusal_of(call)
        assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "HOLD_SUPERSEDED")
        assert fault.metadata == {"hold_id": "h1", "revision": "5"}
    assert await listed(publisher) == ["h1"]


async def test_no_revision_is_so_great_that_none_can_follow(publisher: PublisherServiceAsyncStub) -> None:
    last = 2**63 - 1
    for call in (publisher.PutHold(putting(revision=last)), publisher.ReleaseHold(releasing(revision=last))):
        code, fault = await refusal_of(call)
        assert (code, [each.field for each in fault.violations]) == (Code.INVALID_ARGUMENT, ["revision"])
    await publisher.PutHold(putting(revision=2**62))
    assert not (await publisher.ReleaseHold(releasing())).hold.in_force


async def test_a_release_overtakes_its_put(publisher: PublisherServiceAsyncStub) -> None:
    released = (await publisher.ReleaseHold(releasing(revision=2))).hold
    assert (released.revision, released.in_force, released.scope) == (2, False, HOLD_SCOPE_UNSPECIFIED)
    code, fault = await refusal_of(publisher.PutHold(putting(revision=1)))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "HOLD_SUPERSEDED")
    assert (await publisher.PutHold(putting(revision=3))).hold.in_force


async def test_a_hold_of_another_account_is_another_hold(publisher: PublisherServiceAsyncStub) -> None:
    await publisher.PutHold(putting())
    code, fault = await refusal_of(publisher.PutHold(putting(account="another")))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "HOLD_SCOPE_CHANGED")
    assert fault.metadata == {"hold_id": "h1", "scope_id": "page"}


async def test_a_hold_of_another_organization_is_not_found(publisher: PublisherServiceAsyncStub) -> None:
    await publisher.PutHold(putting())
    code, fault = await refusal_of(publisher.ReleaseHold(releasing(organization_id="other")))
    assert (code, fault.reason) == (Code.NOT_FOUND, "HOLD_NOT_FOUND")
    assert (await listed(publisher), await listed(publisher, organization_id="other")) == (["h1"], [])


async def test_a_repeated_call_gets_its_first_answer(publisher: PublisherServiceAsyncStub, database: Database) -> None:
    put = await publisher.PutHold(putting(request_id="put"))
    released = await publisher.ReleaseHold(releasing(request_id="release"))
    assert await publisher.PutHold(putting(request_id="put")) == put
    assert await publisher.ReleaseHold(releasing(request_id="release")) == released
    assert await listed(publisher) == []
    code, fault = await refusal_of(publisher.PutHold(putting(request_id="put", reason="another")))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "REQUEST_ID_REUSED")
    async with database.read() as connection:
        assert (await connection.execute(text("select revision from hold"))).scalar_one() == 2


async def test_holds_are_listed_oldest_first_by_account_and_page(publisher: PublisherServiceAsyncStub) -> None:
    for number in range(5):
        await publisher.PutHold(putting(f"h{9 - number}", f"page-{number % 2}"))
    assert await listed(publisher) == ["h9", "h8", "h7", "h6", "h5"]
    assert await listed(publisher, social_account_id="page-1") == ["h8", "h6"]
    assert await listed(publisher, social_account_id="nobody") == []
    request = pb.ListHoldsRequest(organization_id="acme", page_size=2)
    pages: list[list[str]] = []
    while not pages or request.page_token:
        answer = await publisher.ListHolds(request)
        pages.append([hold.id for hold in answer.holds])
        request.page_token = answer.next_page_token
    assert pages == [["h9", "h8"], ["h7", "h6"], ["h5"]]


@pytest.mark.parametrize(
    ("request_of", "field"),
    [
        (putting(hold=""), "hold_id"),
        (putting(hold="a b"), "hold_id"),
        (putting(account=""), "scope_id"),
        (putting(scope=HOLD_SCOPE_UNSPECIFIED), "scope"),
        (putting(scope=99), "scope"),
        (putting(revision=-1), "revision"),
        (putting(reason="x" * 501), "reason"),
        (putting(holder="x" * 201), "holder"),
    ],
    ids=["no id", "bad id", "no account", "no scope", "unknown scope", "revision", "long reason", "long holder"],
)
async def test_a_bad_hold_is_refused(
    publisher: PublisherServiceAsyncStub, request_of: pb.PutHoldRequest, field: str
) -> None:
    code, fault = await refusal_of(publisher.PutHold(request_of))
    assert code is Code.INVALID_ARGUMENT
    assert [violation.field for violation in fault.violations] == [field]


async def test_a_bad_release_or_page_is_refused(publisher: PublisherServiceAsyncStub) -> None:
    for call, field in (
        (publisher.ReleaseHold(releasing(hold="")), "hold_id"),
        (publisher.ReleaseHold(releasing(revision=-1)), "revision"),
        (publisher.ListHolds(pb.ListHoldsRequest(organization_id="acme", page_size=201)), "page_size"),
        (publisher.ListHolds(pb.ListHoldsRequest(organization_id="acme", page_token="x")), "page_token"),
    ):
        code, fault = await refusal_of(call)
        assert (code, [violation.field for violation in fault.violations]) == (Code.INVALID_ARGUMENT, [field])
