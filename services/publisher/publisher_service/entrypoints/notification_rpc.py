"""NotificationService over gRPC: decode, call, encode."""

from datetime import datetime
from typing import Any

import grpc

from postflow.publisher.v1 import notification_service_pb2 as pb
from postflow.publisher.v1.notification_service_pb2_grpc import NotificationServiceServicer
from publisher_service.application.create_subscription import CreateSubscription
from publisher_service.application.delete_subscription import DeleteSubscription
from publisher_service.application.put_recipients import PutRecipients
from publisher_service.application.read_notifications import ReadNotifications
from publisher_service.application.retry_delivery import RetryDelivery
from publisher_service.application.rotate_subscription_secret import RotateSubscriptionSecret
from publisher_service.application.send_test_notification import SendTestNotification
from publisher_service.application.update_subscription import UpdateSubscription
from publisher_service.wire import notifications as wire
from servicekit.pg.ledger import mutation
from servicekit.rpc import MAX_SENT_BYTES, Sizes
from servicekit.rpc.paging import next_page_token, read_page

SIZES = {"postflow.publisher.v1.NotificationService/ListRecipients": Sizes(answer=MAX_SENT_BYTES)}
"""Each list may have 50 people, with names."""

Context = grpc.aio.ServicerContext[Any, Any]


class NotificationServicer(NotificationServiceServicer):
    def __init__(
        self,
        *,
        create: CreateSubscription,
        delete: DeleteSubscription,
        put: PutRecipients,
        read: ReadNotifications,
        retry: RetryDelivery,
        rotate: RotateSubscriptionSecret,
        send_test: SendTestNotification,
        update: UpdateSubscription,
    ) -> None:
        self._create = create
        self._delete = delete
        self._put = put
        self._read = read
        self._retry = retry
        self._rotate = rotate
        self._send_test = send_test
        self._update = update

    async def PutRecipients(self, request: pb.PutRecipientsRequest, context: Context) -> pb.PutRecipientsResponse:
        call = mutation(request, pb.PutRecipientsResponse, wire.put_recipients_response)
        return await self._put(call, wire.recipient_list_from(request), request.recipient_list.etag)

    async def GetRecipients(self, request: pb.GetRecipientsRequest, context: Context) -> pb.GetRecipientsResponse:
        return wire.get_recipients_response(await self._read.recipients(request.organization_id, request.brand_id))

    async def ListRecipients(self, request: pb.ListRecipientsRequest, context: Context) -> pb.ListRecipientsResponse:
        page = read_page(request)
        after = str(page.after[0]) if page.after else None
        found = await self._read.recipient_lists(request.organization_id, after=after, limit=page.size + 1)
        shown = found[: page.size]
        token = next_page_token(request, (shown[-1].brand_id,)) if len(found) > len(shown) else ""
        return wire.list_recipients_response(shown, token)

    async def CreateSubscription(
        self, request: pb.CreateSubscriptionRequest, context: Context
    ) -> pb.CreateSubscriptionResponse:
        call = mutation(request, pb.CreateSubscriptionResponse, wire.create_subscription_response)
        return await self._create(wire.shown_once(call), wire.new_subscription_from(request))

    async def GetSubscription(self, request: pb.GetSubscriptionRequest, context: Context) -> pb.GetSubscriptionResponse:
        found = await self._read.subscription(request.organization_id, request.subscription_id)
        return wire.get_subscription_response(found)

    async def ListSubscriptions(
        self, request: pb.ListSubscriptionsRequest, context: Context
    ) -> pb.ListSubscriptionsResponse:
        page = read_page(request)
        after = str(page.after[0]) if page.after else ""
        found = await self._read.subscriptions(request.organization_id, after=after, limit=page.size + 1)
        shown = found[: page.size]
        token = next_page_token(request, (shown[-1].id,)) if len(found) > len(shown) else ""
        return wire.list_subscriptions_response(shown, token)

    async def UpdateSubscription(
        self, request: pb.UpdateSubscriptionRequest, context: Context
    ) -> pb.UpdateSubscriptionResponse:
        call = mutation(request, pb.UpdateSubscriptionResponse, wire.update_subscription_response)
        return await self._update(call, wire.subscription_change_from(request))

    async def RotateSubscriptionSecret(
        self, request: pb.RotateSubscriptionSecretRequest, context: Context
    ) -> pb.RotateSubscriptionSecretResponse:
        call = mutation(request, pb.RotateSubscriptionSecretResponse, wire.rotate_secret_response)
        return await self._rotate(wire.shown_once(call), request.subscription_id, wire.overlap_from(request))

    async def DeleteSubscription(
        self, request: pb.DeleteSubscriptionRequest, context: Context
    ) -> pb.DeleteSubscriptionResponse:
        call = mutation(request, pb.DeleteSubscriptionResponse, wire.delete_subscription_response)
        return await self._delete(call, request.subscription_id, request.etag)

    async def ListDeliveries(self, request: pb.ListDeliveriesRequest, context: Context) -> pb.ListDeliveriesResponse:
        page = read_page(request)
        before = (datetime.fromisoformat(str(page.after[0])), str(page.after[1])) if page.after else None
        wanted = wire.delivery_filter_from(request)
        found = await self._read.deliveries(wanted, before=before, limit=page.size + 1)
        shown = found[: page.size]
        last = shown[-1][0] if len(found) > len(shown) else None
        token = next_page_token(request, (last.create_time.isoformat(), last.id)) if last else ""
        return wire.list_deliveries_response(shown, token)

    async def RetryDelivery(self, request: pb.RetryDeliveryRequest, context: Context) -> pb.RetryDeliveryResponse:
        call = mutation(request, pb.RetryDeliveryResponse, wire.retry_delivery_response)
        return await self._retry(call, request.delivery_id)

    async def SendTestNotification(
        self, request: pb.SendTestNotificationRequest, context: Context
    ) -> pb.SendTestNotificationResponse:
        call = mutation(request, pb.SendTestNotificationResponse, wire.send_test_response)
        return await self._send_test(call, wire.trial_from(request))
