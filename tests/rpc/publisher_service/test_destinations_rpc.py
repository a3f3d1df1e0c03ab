"""ListDestinations and UpdateDestination: pages, answers, and each refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from postflow.publisher.v1 import destination_pb2, social_account_service_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.target.v1 import target_pb2
from testkit.refusals import fields_at_fault, refusal_of
from tests.rpc.publisher_service.raw import raw_refusal

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub
    from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceAsyncStub

ACTIVE, INACTIVE = destination_pb2.DESTINATION_STATE_ACTIVE, destination_pb2.DESTINATION_STATE_INACTIVE


def chat(name: str = "@chat", account: str = "bot", channel: str = "telegram") -> target_pb2.Target:
    return target_pb2.Target(social_account_id=account, channel=channel, destination=name)


def change(
    target: target_pb2.Target | None = None,
    state: destination_pb2.DestinationState = INACTIVE,
    *,
    organization: str = "acme",
    note: str = "",
    etag: str = "",
    request_id: str = "",
) -> pb.UpdateDestinationRequest:
    return pb.UpdateDestinationRequest(
        organization_id=organization, target=target or chat(), state=state, note=note, etag=etag, request_id=request_id
    )


@pytest.fixture(autouse=True)
async def bot(accounts: SocialAccountServiceAsyncStub) -> None:
    for account in ("bot", "mailer"):
        await accounts.ConnectAccount(
            social_account_service_pb2.ConnectAccountRequest(
                organization_id="acme",
                social_account_id=account,
                provider="sandbox",
                external_account_id=account,
                credentials=social_account_service_pb2.Credentials(access_token="sandbox-ok"),
            )
        )


async def test_a_destination_is_deactivated_and_activated(publisher: PublisherServiceAsyncStub) -> None:
    off = (await publisher.UpdateDestination(change(note="she left"))).destination
    assert (off.target, off.state, off.state_reason, off.error_message) == (chat(), INACTIVE, "DEACTIVATED", "she left")
    assert off.HasField("deactivate_time")
    on = (await publisher.UpdateDestination(change(state=ACTIVE, etag=off.etag))).destination
    assert (on.state, on.state_reason, on.failures, on.error_message) == (ACTIVE, "", 0, "")
    assert not on.HasField("deactivate_time")
    assert on.etag != off.etag
    listed = await publisher.ListDestinations(pb.ListDestinationsRequest(organization_id="acme"))
    assert listed.destinations == [on]


async def test_a_repeated_request_gets_the_first_answer(publisher: PublisherServiceAsyncStub) -> None:
    first = await publisher.UpdateDestination(change(request_id="r1"))
    await publisher.UpdateDestination(change(state=ACTIVE))
    assert await publisher.UpdateDestination(change(request_id="r1")) == first
    (now,) = (await publisher.ListDestinations(pb.ListDestinationsRequest(organization_id="acme"))).destinations
    assert now.state == ACTIVE


async def test_the_channel_has_one_spelling(publisher: PublisherServiceAsyncStub) -> None:
    answer = await publisher.UpdateDestination(change(chat(channel=" Telegram ")))
    assert answer.destination.target == chat()


async def test_pages_are_in_the_order_of_account_channel_and_destination(publisher: PublisherServiceAsyncStub) -> None:
    named = [("bot", "email", "b"), ("bot", "telegram", "a"), ("bot", "telegram", "c"), ("mailer", "email", "a")]
    for account, channel, name in reversed(named):
        await publisher.UpdateDestination(change(chat(name, account, channel)))
    await publisher.UpdateDestination(change(chat("c"), ACTIVE))
    found, token = [], ""
    while True:
        page = await publisher.ListDestinations(
            pb.ListDestinationsRequest(organization_id="acme", page_size=1, page_token=token)
        )
        targets = [each.target for each in page.destinations]
        found += [(target.social_account_id, target.channel, target.destination) for target in targets]
        if not (token := page.next_page_token):
            break
    assert found == named


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({"social_account_id": "bot"}, ["a", "b"]),
        ({"states": [INACTIVE]}, ["b", "x"]),
        ({"states": [ACTIVE]}, ["a"]),
        ({"states": [ACTIVE, INACTIVE]}, ["a", "b", "x"]),
        ({"social_account_id": "bot", "states": [INACTIVE]}, ["b"]),
        ({"social_account_id": "nobody"}, []),
    ],
    ids=str,
)
async def test_destinations_are_listed_by_account_and_state(
    publisher: PublisherServiceAsyncStub, wanted: dict[str, object], names: list[str]
) -> None:
    for target in (chat("a"), chat("b"), chat("x", "mailer")):
        await publisher.UpdateDestination(change(target))
    await publisher.UpdateDestination(change(chat("a"), ACTIVE))
    request = pb.ListDestinationsRequest(organization_id="acme", **wanted)  # type: ignore[arg-type]
    page = await publisher.ListDestinations(request)
    assert [each.target.destination for each in page.destinations] == names


async def test_a_token_of_another_request_is_refused(publisher: PublisherServiceAsyncStub) -> None:
    for name in ("a", "b"):
        await publisher.UpdateDestination(change(chat(name)))
    page = await publisher.ListDestinations(pb.ListDestinationsRequest(organization_id="acme", page_size=1))
    wrong = pb.ListDestinationsRequest(organization_id="acme", social_account_id="bot", page_token=page.next_page_token)
    code, refusal = await refusal_of(publisher.ListDestinations(wrong))
    assert (code, fields_at_fault(refusal)) == (grpc.StatusCode.INVALID_ARGUMENT, ["page_token"])


async def test_a_foreign_destination_is_refused_like_an_unknown_one(publisher: PublisherServiceAsyncStub) -> None:
    await publisher.UpdateDestination(change())
    before = await publisher.ListDestinations(pb.ListDestinationsRequest(organization_id="acme"))
    code, refusal = await refusal_of(publisher.UpdateDestination(change(state=ACTIVE, organization="other")))
    assert (code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "DESTINATION_NOT_FOUND")
    foreign = await raw_refusal(publisher.UpdateDestination(change(state=ACTIVE, organization="other")))
    assert foreign == await raw_refusal(publisher.UpdateDestination(change(state=ACTIVE, organization="nobody")))
    assert await publisher.ListDestinations(pb.ListDestinationsRequest(organization_id="acme")) == before
    assert not (await publisher.ListDestinations(pb.ListDestinationsRequest(organization_id="other"))).destinations


async def test_a_foreign_account_is_refused_like_an_unknown_one(publisher: PublisherServiceAsyncStub) -> None:
    code, refusal = await refusal_of(publisher.UpdateDestination(change(organization="other")))
    assert (code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "ACCOUNT_NOT_FOUND")
    foreign = await raw_refusal(publisher.UpdateDestination(change(organization="other")))
    assert foreign == await raw_refusal(publisher.UpdateDestination(change(organization="nobody")))


async def test_a_stale_etag_is_aborted(publisher: PublisherServiceAsyncStub) -> None:
    await publisher.UpdateDestination(change())
    for state in (ACTIVE, INACTIVE):
        code, refusal = await refusal_of(publisher.UpdateDestination(change(state=state, etag="7")))
        assert (code, refusal.reason) == (grpc.StatusCode.ABORTED, "ETAG_MISMATCH")
        assert refusal.metadata["etag"] == "1"


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (change(chat("")), "target.destination"),
        (change(chat(channel="fax")), "target.channel"),
        (change(chat(account="")), "target.social_account_id"),
        (change(state=destination_pb2.DESTINATION_STATE_UNSPECIFIED), "state"),
        (change(state=7), "state"),  # type: ignore[arg-type]
        (change(note="n" * 501), "note"),
        (pb.UpdateDestinationRequest(organization_id="acme", state=ACTIVE), "target"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_invalid_change_names_its_field(
    publisher: PublisherServiceAsyncStub, request_: pb.UpdateDestinationRequest, field: str
) -> None:
    code, refusal = await refusal_of(publisher.UpdateDestination(request_))
    assert (code, fields_at_fault(refusal)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])
