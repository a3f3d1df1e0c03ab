"""NotificationService: answers, repeats, pages, and each refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from postflow.publisher.v1 import notification_pb2 as msg
from postflow.publisher.v1 import notification_service_pb2 as pb
from postflow.publisher.v1.notification_service_pb2_grpc import (
    NotificationServiceStub,
    add_NotificationServiceServicer_to_server,
)
from publisher_service.entrypoints.notification_rpc import SIZES, NotificationServicer
from servicekit.ids import Uuid7Source
from servicekit.rpc import RpcServer
from testkit.refusals import fields_at_fault, refusal_of
from tests.rpc.publisher_service.raw import raw_refusal
from tests.usecase.publisher_service.notified import Notified, failed, notified

if TYPE_CHECKING:
    from postflow.publisher.v1.notification_service_pb2_grpc import NotificationServiceAsyncStub

ADMIN, EDITOR = msg.RECIPIENT_ROLE_ADMIN, msg.RECIPIENT_ROLE_EDITOR
ACTIVE, PAUSED = msg.SUBSCRIPTION_STATE_ACTIVE, msg.SUBSCRIPTION_STATE_PAUSED
INVALID = grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture
async def site(database_url: str) -> AsyncIterator[Notified]:
    async with AsyncExitStack() as exits:
        yield await notified(database_url, exits)


@pytest.fixture
async def stub(site: Notified) -> AsyncIterator[NotificationServiceAsyncStub]:
    servicer = NotificationServicer(
        create=site.create_subscription,
        delete=site.delete_subscription,
        put=site.put_recipients,
        read=site.read,
        retry=site.retry_delivery,
        rotate=site.rotate_secret,
        send_test=site.send_test,
        update=site.update_subscription,
    )
    registered = (add_NotificationServiceServicer_to_server, servicer)
    server = RpcServer(listen="127.0.0.1:0", servicers=[registered], ids=Uuid7Source(), sizes=SIZES)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield NotificationServiceStub(channel)
    await server.stop(0.0)


def put(
    *people: str, brand: str = "", etag: str = "", request_id: str = "", organization: str = "acme", **fields: Any
) -> pb.PutRecipientsRequest:
    recipients = [msg.Recipient(email=each, name="Ann", role=ADMIN) for each in people or ("ann@example.com",)]
    wanted = msg.RecipientList(**{"brand_id": brand, "recipients": recipients, "etag": etag, **fields})
    return pb.PutRecipientsRequest(organization_id=organization, recipient_list=wanted, request_id=request_id)


def create(url: str, name: str = "w1", *, request_id: str = "", **fields: Any) -> pb.CreateSubscriptionRequest:
    wanted = msg.Subscription(**{"url": url, **fields})
    return pb.CreateSubscriptionRequest(
        organization_id="acme", subscription_id=name, subscription=wanted, request_id=request_id
    )


def update(*paths: str, name: str = "w1", **fields: Any) -> pb.UpdateSubscriptionRequest:
    return pb.UpdateSubscriptionRequest(
        organization_id="acme",
        subscription_id=name,
        subscription=msg.Subscription(**fields),
        update_mask=FieldMask(paths=paths),
    )


async def test_a_list_is_put_read_and_listed(stub: NotificationServiceAsyncStub) -> None:
    preferences = msg.Preferences(kinds=[msg.NOTIFICATION_KIND_POST_FAILED], digest_hour=0)
    wanted = put(brand="shop", name="The shop", time_zone="Europe/Berlin", preferences=preferences)
    stored = (await stub.PutRecipients(wanted)).recipient_list
    assert (stored.etag, stored.time_zone, stored.announced) == ("1", "Europe/Berlin", False)
    assert stored.preferences.digest_hour == 0
    assert stored.preferences.published == msg.PUBLISHED_MODE_DIGEST
    read = await stub.GetRecipients(pb.GetRecipientsRequest(organization_id="acme", brand_id="shop"))
    assert read.recipient_list == stored
    default = (await stub.PutRecipients(put())).recipient_list
    assert (default.time_zone, default.preferences.digest_hour) == ("UTC", 8)
    pages, token = [], ""
    while True:
        request = pb.ListRecipientsRequest(organization_id="acme", page_size=1, page_token=token)
        page = await stub.ListRecipients(request)
        pages += [each.brand_id for each in page.recipient_lists]
        if not (token := page.next_page_token):
            break
    assert pages == ["", "shop"]


async def test_a_repeated_put_gets_the_first_answer(stub: NotificationServiceAsyncStub) -> None:
    first = await stub.PutRecipients(put(request_id="r1"))
    await stub.PutRecipients(put("bob@example.com"))
    assert await stub.PutRecipients(put(request_id="r1")) == first
    code, refusal = await refusal_of(stub.PutRecipients(put("eve@example.com", request_id="r1")))
    assert (code, refusal.reason) == (INVALID, "REQUEST_ID_REUSED")


MAILBOX = "ann@example.com"


@pytest.mark.parametrize(
    ("request_", "reason", "field"),
    [
        (put("ann"), "INVALID_EMAIL", "recipient_list.recipients[0].email"),
        (put(f"{MAILBOX}\r\nBcc: eve@example.com"), "INVALID_EMAIL", "recipient_list.recipients[0].email"),
        (put(f"{MAILBOX}, eve@example.com"), "INVALID_EMAIL", "recipient_list.recipients[0].email"),
        (put(MAILBOX, MAILBOX.upper()), "INVALID_FIELD", "recipient_list.recipients[1].email"),
        (put(*(f"p{n}@example.com" for n in range(51))), "INVALID_FIELD", "recipient_list.recipients"),
        (
            put(recipients=[msg.Recipient(email=MAILBOX, name="A\r\nBcc: e@example.com", role=ADMIN)]),
            "INVALID_FIELD",
            "recipient_list.recipients[0].name",
        ),
        (put(recipients=[msg.Recipient(email=MAILBOX)]), "INVALID_FIELD", "recipient_list.recipients[0].role"),
        (put(time_zone="Mars/Olympus"), "UNKNOWN_TIME_ZONE", "recipient_list.time_zone"),
        (put(name="a\nb"), "INVALID_FIELD", "recipient_list.name"),
        (
            put(preferences=msg.Preferences(kinds=[msg.NOTIFICATION_KIND_DIGEST])),
            "UNKNOWN_KIND",
            "recipient_list.preferences.kinds[0]",
        ),
        (put(preferences=msg.Preferences(digest_hour=24)), "INVALID_FIELD", "recipient_list.preferences.digest_hour"),
        (pb.PutRecipientsRequest(organization_id="acme"), "INVALID_FIELD", "recipient_list"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_invalid_list_names_its_field(
    stub: NotificationServiceAsyncStub, request_: pb.PutRecipientsRequest, reason: str, field: str
) -> None:
    code, refusal = await refusal_of(stub.PutRecipients(request_))
    assert (code, refusal.reason, fields_at_fault(refusal)) == (INVALID, reason, [field])


async def test_the_secret_is_answered_once_and_never_stored(site: Notified, stub: NotificationServiceAsyncStub) -> None:
    created = await stub.CreateSubscription(create(site.receiver.url, request_id="r1"))
    assert created.secret.startswith("whsec_")
    rotate = pb.RotateSubscriptionSecretRequest(organization_id="acme", subscription_id="w1", request_id="r2")
    rotated = await stub.RotateSubscriptionSecret(rotate)
    assert rotated.secret not in ("", created.secret)
    assert rotated.subscription.HasField("former_secret_end_time")
    repeated = await stub.CreateSubscription(create(site.receiver.url, request_id="r1"))
    assert (repeated.subscription, repeated.secret) == (created.subscription, "")
    assert (await stub.RotateSubscriptionSecret(rotate)).secret == ""
    read = await stub.GetSubscription(pb.GetSubscriptionRequest(organization_id="acme", subscription_id="w1"))
    listed = await stub.ListSubscriptions(pb.ListSubscriptionsRequest(organization_id="acme"))
    tables = await site.rows("select tablename from pg_tables where schemaname = 'public'")
    rows = [await site.rows(f'select t::text from "{table.tablename}" t') for table in tables]  # noqa: S608
    dump = str(rows)
    stored = await site.rows("select response from request_ledger")
    for secret in (created.secret, rotated.secret):
        bare = secret.removeprefix("whsec_")
        assert bare not in f"{read}{listed}{dump}"
        assert all(bare.encode() not in row.response for row in stored)
        assert bare.encode().hex() not in dump


async def test_a_webhook_is_updated_paused_and_deleted(site: Notified, stub: NotificationServiceAsyncStub) -> None:
    await stub.CreateSubscription(create(site.receiver.url))
    paused = (await stub.UpdateSubscription(update("state", "kinds", state=PAUSED))).subscription
    assert (paused.state, paused.state_reason, paused.etag) == (PAUSED, "BY_REQUEST", "2")
    resumed = (await stub.UpdateSubscription(update("state", state=ACTIVE, etag="2"))).subscription
    assert (resumed.state, resumed.state_reason) == (ACTIVE, "")
    deletion = pb.DeleteSubscriptionRequest(organization_id="acme", subscription_id="w1", etag="3", request_id="r1")
    await stub.DeleteSubscription(deletion)
    await stub.DeleteSubscription(deletion)
    code, refusal = await refusal_of(
        stub.GetSubscription(pb.GetSubscriptionRequest(organization_id="acme", subscription_id="w1"))
    )
    assert (code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "SUBSCRIPTION_NOT_FOUND")


@pytest.mark.parametrize(
    ("request_", "reason", "field"),
    [
        (create("https://10.0.0.1/"), "URL_IP_ADDRESS", "subscription.url"),
        (create("ftp://example.com/"), "URL_NOT_HTTPS", "subscription.url"),
        (create(""), "INVALID_FIELD", "subscription.url"),
        (create("https://example.com/", kinds=[msg.NOTIFICATION_KIND_TEST]), "UNKNOWN_KIND", "subscription.kinds[0]"),
        (create("https://example.com/", brand_ids=["a b"]), "INVALID_FIELD", "subscription.brand_ids[0]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_invalid_webhook_names_its_field(
    stub: NotificationServiceAsyncStub, request_: pb.CreateSubscriptionRequest, reason: str, field: str
) -> None:
    code, refusal = await refusal_of(stub.CreateSubscription(request_))
    assert (code, refusal.reason, fields_at_fault(refusal)) == (INVALID, reason, [field])


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (update(), "update_mask"),
        (update("failures"), "update_mask"),
        (update("url"), "subscription.url"),
        (update("state"), "subscription.state"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_invalid_update_names_its_field(
    site: Notified, stub: NotificationServiceAsyncStub, request_: pb.UpdateSubscriptionRequest, field: str
) -> None:
    await stub.CreateSubscription(create(site.receiver.url))
    code, refusal = await refusal_of(stub.UpdateSubscription(request_))
    assert (code, fields_at_fault(refusal)) == (INVALID, [field])


async def test_the_limit_of_webhooks_is_a_matter_of_resources(
    site: Notified, stub: NotificationServiceAsyncStub
) -> None:
    for number in range(20):
        await stub.CreateSubscription(create(site.receiver.url, f"w{number}"))
    code, refusal = await refusal_of(stub.CreateSubscription(create(site.receiver.url, "more")))
    assert (code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "SUBSCRIPTION_LIMIT_REACHED")
    code, refusal = await refusal_of(stub.CreateSubscription(create(site.receiver.url, "w1")))
    assert (code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "SUBSCRIPTION_EXISTS")


async def test_deliveries_are_listed_and_sent_again(site: Notified, stub: NotificationServiceAsyncStub) -> None:
    await stub.CreateSubscription(create(site.receiver.url))
    await stub.PutRecipients(put())
    site.receiver.usually(500)
    await site.record(failed("j1"), failed("j2"))
    await site.all_sent()
    found: list[msg.Delivery] = []
    token = ""
    while True:
        page = await stub.ListDeliveries(
            pb.ListDeliveriesRequest(organization_id="acme", page_size=1, page_token=token)
        )
        found += page.deliveries
        if not (token := page.next_page_token):
            break
    assert len({each.id for each in found}) == 4
    assert {each.subject_id for each in found} == {"j1", "j2"}
    of_webhook = await stub.ListDeliveries(pb.ListDeliveriesRequest(organization_id="acme", subscription_id="w1"))
    (refused,) = [each for each in of_webhook.deliveries if each.attempts]
    assert (refused.error_reason, refused.email, refused.state) == ("HTTP_500", "", msg.DELIVERY_STATE_WAITING)
    site.receiver.usually(204)
    again = await stub.RetryDelivery(pb.RetryDeliveryRequest(organization_id="acme", delivery_id=refused.id))
    assert again.delivery.attempts == 0
    await site.all_sent()
    code, refusal = await refusal_of(
        stub.RetryDelivery(pb.RetryDeliveryRequest(organization_id="acme", delivery_id=refused.id))
    )
    assert (code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "DELIVERY_DELIVERED")


async def test_a_test_names_a_webhook_or_a_person(site: Notified, stub: NotificationServiceAsyncStub) -> None:
    await stub.PutRecipients(put())
    for wanted in ({}, {"subscription_id": "w1", "email": MAILBOX}):
        request = pb.SendTestNotificationRequest(organization_id="acme", **wanted)
        code, refusal = await refusal_of(stub.SendTestNotification(request))
        assert (code, fields_at_fault(refusal)) == (INVALID, ["subscription_id"])
    sent = await stub.SendTestNotification(pb.SendTestNotificationRequest(organization_id="acme", email=MAILBOX))
    assert (sent.delivery.kind, sent.delivery.email) == (msg.NOTIFICATION_KIND_TEST, MAILBOX)


Asked = Callable[["NotificationServiceAsyncStub", str], Awaitable[Any]]


@pytest.mark.parametrize(
    "asked",
    [
        lambda stub, tenant: stub.GetRecipients(pb.GetRecipientsRequest(organization_id=tenant, brand_id="shop")),
        lambda stub, tenant: stub.GetSubscription(
            pb.GetSubscriptionRequest(organization_id=tenant, subscription_id="w1")
        ),
        lambda stub, tenant: stub.RotateSubscriptionSecret(
            pb.RotateSubscriptionSecretRequest(organization_id=tenant, subscription_id="w1")
        ),
        lambda stub, tenant: stub.DeleteSubscription(
            pb.DeleteSubscriptionRequest(organization_id=tenant, subscription_id="w1")
        ),
        lambda stub, tenant: stub.SendTestNotification(
            pb.SendTestNotificationRequest(organization_id=tenant, subscription_id="w1")
        ),
        lambda stub, tenant: stub.SendTestNotification(
            pb.SendTestNotificationRequest(organization_id=tenant, email=MAILBOX, brand_id="shop")
        ),
    ],
)
async def test_a_foreign_thing_is_refused_like_an_unknown_one(
    site: Notified, stub: NotificationServiceAsyncStub, asked: Asked
) -> None:
    await stub.CreateSubscription(create(site.receiver.url))
    await stub.PutRecipients(put(brand="shop"))
    foreign = await raw_refusal(asked(stub, "other"))  # type: ignore[arg-type]
    assert foreign == await raw_refusal(asked(stub, "nobody"))  # type: ignore[arg-type]
