"""Recipients, webhooks and deliveries: the calls of NotificationService."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar, cast

from google.protobuf.field_mask_pb2 import FieldMask

from civil.zones import UnknownZone, find_zone
from postflow.publisher.v1 import notification_pb2
from postflow.publisher.v1 import notification_service_pb2 as pb
from publisher_service.domain.delivery import MAIL, OPEN, Delivery, DeliveryFilter, DeliveryState, Trial
from publisher_service.domain.notification import CHOSEN, NotificationKind
from publisher_service.domain.recipients import (
    DEFAULT_DIGEST_HOUR,
    Mode,
    Preferences,
    Recipient,
    RecipientList,
    Role,
    is_email,
)
from publisher_service.domain.subscription import (
    DEFAULT_OVERLAP,
    Subscription,
    SubscriptionChange,
    SubscriptionState,
)
from servicekit.faults import InvalidField
from servicekit.pg.ledger import Call
from servicekit.run.settings import Secret
from servicekit.timestamps import timestamp

_KINDS = {
    kind: cast(notification_pb2.NotificationKind, notification_pb2.NotificationKind.Value(f"NOTIFICATION_KIND_{kind}"))
    for kind in NotificationKind
}
_KINDS_BACK = {_KINDS[kind]: kind for kind in CHOSEN}
_MODES = {
    Mode.EACH: notification_pb2.PUBLISHED_MODE_EACH,
    Mode.DIGEST: notification_pb2.PUBLISHED_MODE_DIGEST,
    Mode.NONE: notification_pb2.PUBLISHED_MODE_NONE,
}
_ROLES = {
    Role.ADMIN: notification_pb2.RECIPIENT_ROLE_ADMIN,
    Role.EDITOR: notification_pb2.RECIPIENT_ROLE_EDITOR,
}
_STATES = {
    SubscriptionState.ACTIVE: notification_pb2.SUBSCRIPTION_STATE_ACTIVE,
    SubscriptionState.PAUSED: notification_pb2.SUBSCRIPTION_STATE_PAUSED,
}
_DELIVERY_STATES = {
    state: cast(notification_pb2.DeliveryState, notification_pb2.DeliveryState.Value(f"DELIVERY_STATE_{state}"))
    for state in DeliveryState
}
_CHANGEABLE = ("url", "kinds", "brand_ids", "description", "state")

S = TypeVar("S", pb.CreateSubscriptionResponse, pb.RotateSubscriptionSecretResponse)
R = TypeVar("R")


def recipient_list_from(request: pb.PutRecipientsRequest) -> RecipientList:
    """Translates a request. Raises InvalidField for an address, a kind or a zone that cannot be."""
    message = request.recipient_list
    try:
        zone = find_zone(message.time_zone or "UTC").name
    except UnknownZone as error:
        raise InvalidField("recipient_list.time_zone", str(error), reason="UNKNOWN_TIME_ZONE") from None
    return RecipientList(
        organization_id=request.organization_id,
        brand_id=message.brand_id,
        name=_seen("recipient_list.name", message.name),
        time_zone=zone,
        recipients=_recipients_from(message.recipients),
        preferences=_preferences_from(message.preferences),
    )


def new_subscription_from(request: pb.CreateSubscriptionRequest) -> SubscriptionChange:
    message = request.subscription
    return SubscriptionChange(
        organization_id=request.organization_id,
        id=request.subscription_id,
        url=_url(message),
        kinds=_kinds_from("subscription.kinds", message.kinds),
        brand_ids=tuple(dict.fromkeys(message.brand_ids)),
        description=message.description,
    )


def subscription_change_from(request: pb.UpdateSubscriptionRequest) -> SubscriptionChange:
    """Translates a request. Raises InvalidField for a mask without a field that can be changed."""
    message = request.subscription
    named = _named(request.update_mask)
    change = SubscriptionChange(organization_id=request.organization_id, id=request.subscription_id, etag=message.etag)
    if "url" in named:
        change = replace(change, url=_url(message))
    if "kinds" in named:
        change = replace(change, kinds=_kinds_from("subscription.kinds", message.kinds))
    if "brand_ids" in named:
        change = replace(change, brand_ids=tuple(dict.fromkeys(message.brand_ids)))
    if "description" in named:
        change = replace(change, description=message.description)
    if "state" in named:
        change = replace(change, state=_state_from(message.state))
    return change


def overlap_from(request: pb.RotateSubscriptionSecretRequest) -> timedelta:
    return request.overlap.ToTimedelta() if request.HasField("overlap") else DEFAULT_OVERLAP


def delivery_filter_from(request: pb.ListDeliveriesRequest) -> DeliveryFilter:
    return DeliveryFilter(
        organization_id=request.organization_id,
        receiver=request.subscription_id or None,
        states=tuple(state for state, number in _DELIVERY_STATES.items() if number in request.states),
    )


def trial_from(request: pb.SendTestNotificationRequest) -> Trial:
    """Translates a request. Raises InvalidField unless it names a webhook, or else an address."""
    if bool(request.subscription_id) == bool(request.email):
        raise InvalidField("subscription_id", "must be given, or else email")
    return Trial(subscription_id=request.subscription_id, email=request.email, brand_id=request.brand_id)


def put_recipients_response(recipients: RecipientList) -> pb.PutRecipientsResponse:
    return pb.PutRecipientsResponse(recipient_list=_recipient_list(recipients))


def get_recipients_response(recipients: RecipientList) -> pb.GetRecipientsResponse:
    return pb.GetRecipientsResponse(recipient_list=_recipient_list(recipients))


def list_recipients_response(found: Sequence[RecipientList], next_page_token: str) -> pb.ListRecipientsResponse:
    return pb.ListRecipientsResponse(recipient_lists=map(_recipient_list, found), next_page_token=next_page_token)


def create_subscription_response(created: tuple[Subscription, Secret]) -> pb.CreateSubscriptionResponse:
    subscription, secret = created
    return pb.CreateSubscriptionResponse(subscription=_subscription(subscription), secret=secret.reveal())


def rotate_secret_response(rotated: tuple[Subscription, Secret]) -> pb.RotateSubscriptionSecretResponse:
    subscription, secret = rotated
    return pb.RotateSubscriptionSecretResponse(subscription=_subscription(subscription), secret=secret.reveal())


def shown_once(call: Call[R, S]) -> Call[R, S]:
    """Returns the call as the ledger may keep it: its stored answer, and so a repeat, has no secret."""
    return replace(call, encode=lambda answer: _without_secret(answer).SerializeToString())


def get_subscription_response(subscription: Subscription) -> pb.GetSubscriptionResponse:
    return pb.GetSubscriptionResponse(subscription=_subscription(subscription))


def list_subscriptions_response(found: Sequence[Subscription], next_page_token: str) -> pb.ListSubscriptionsResponse:
    return pb.ListSubscriptionsResponse(subscriptions=map(_subscription, found), next_page_token=next_page_token)


def update_subscription_response(subscription: Subscription) -> pb.UpdateSubscriptionResponse:
    return pb.UpdateSubscriptionResponse(subscription=_subscription(subscription))


def delete_subscription_response(_deleted: Subscription) -> pb.DeleteSubscriptionResponse:
    return pb.DeleteSubscriptionResponse()


def list_deliveries_response(found: Sequence[tuple[Delivery, str]], next_page_token: str) -> pb.ListDeliveriesResponse:
    shown = [_delivery(each, subject_id) for each, subject_id in found]
    return pb.ListDeliveriesResponse(deliveries=shown, next_page_token=next_page_token)


def retry_delivery_response(delivery: Delivery) -> pb.RetryDeliveryResponse:
    return pb.RetryDeliveryResponse(delivery=_delivery(delivery, ""))


def send_test_response(delivery: Delivery) -> pb.SendTestNotificationResponse:
    return pb.SendTestNotificationResponse(delivery=_delivery(delivery, ""))


def _recipients_from(messages: Sequence[notification_pb2.Recipient]) -> tuple[Recipient, ...]:
    found: dict[str, Recipient] = {}
    for index, message in enumerate(messages):
        place = f"recipient_list.recipients[{index}]"
        if not is_email(message.email):
            raise InvalidField(f"{place}.email", "is no e-mail address in ASCII", reason="INVALID_EMAIL")
        role = next((role for role, number in _ROLES.items() if number == message.role), None)
        if role is None:
            raise InvalidField(f"{place}.role", "is not known here")
        recipient = Recipient(email=message.email, name=_seen(f"{place}.name", message.name), role=role)
        if recipient.key in found:
            raise InvalidField(f"{place}.email", "is named twice")
        found[recipient.key] = recipient
    return tuple(found.values())


def _preferences_from(message: notification_pb2.Preferences) -> Preferences:
    field = "recipient_list.preferences"
    modes = {number: mode for mode, number in _MODES.items()} | {0: Mode.DIGEST}
    if message.published not in modes:
        raise InvalidField(f"{field}.published", "is not known here")
    return Preferences(
        kinds=_kinds_from(f"{field}.kinds", message.kinds),
        published=modes[message.published],
        digest_hour=message.digest_hour if message.HasField("digest_hour") else DEFAULT_DIGEST_HOUR,
    )


def _kinds_from(field: str, numbers: Sequence[int]) -> tuple[NotificationKind, ...]:
    for index, number in enumerate(numbers):
        if number not in _KINDS_BACK:
            known = ", ".join(CHOSEN)
            raise InvalidField(f"{field}[{index}]", f"must be one of {known}", reason="UNKNOWN_KIND")
    return tuple(kind for kind in CHOSEN if _KINDS[kind] in numbers)


def _url(message: notification_pb2.Subscription) -> str:
    if not message.url:
        raise InvalidField("subscription.url", "must not be empty")
    return message.url


def _state_from(number: int) -> SubscriptionState:
    state = next((state for state, each in _STATES.items() if each == number), None)
    if state is None:
        raise InvalidField("subscription.state", "must be ACTIVE or PAUSED")
    return state


def _named(mask: FieldMask) -> set[str]:
    if not mask.paths:
        raise InvalidField("update_mask", f"names no field; {', '.join(_CHANGEABLE)} can be changed")
    for path in mask.paths:
        if path not in _CHANGEABLE:
            raise InvalidField("update_mask", f"{path!r} cannot be changed; {', '.join(_CHANGEABLE)} can")
    return set(mask.paths)


def _seen(field: str, text: str) -> str:
    """Refuses what would begin another line of a mail, or show it in another order."""
    if not text.isprintable():
        raise InvalidField(field, "must be on one line, without control characters")
    return text


def _without_secret(answer: S) -> S:
    kept = type(answer)()
    kept.CopyFrom(answer)
    kept.ClearField("secret")
    return kept


def _recipient_list(recipients: RecipientList) -> notification_pb2.RecipientList:
    preferences = recipients.preferences
    return notification_pb2.RecipientList(
        brand_id=recipients.brand_id,
        name=recipients.name,
        time_zone=recipients.time_zone,
        recipients=[
            notification_pb2.Recipient(email=each.email, name=each.name, role=_ROLES[each.role])
            for each in recipients.recipients
        ],
        preferences=notification_pb2.Preferences(
            kinds=[_KINDS[kind] for kind in preferences.kinds],
            published=_MODES[preferences.published],
            digest_hour=preferences.digest_hour,
        ),
        announced=recipients.announced_version > 0,
        etag=recipients.etag,
        update_time=timestamp(recipients.update_time),
    )


def _subscription(subscription: Subscription) -> notification_pb2.Subscription:
    return notification_pb2.Subscription(
        id=subscription.id,
        url=subscription.url,
        kinds=[_KINDS[kind] for kind in subscription.kinds if kind in CHOSEN],
        brand_ids=subscription.brand_ids,
        description=subscription.description,
        state=_STATES[subscription.state],
        state_reason=subscription.state_reason,
        failures=subscription.failures,
        failing_since=timestamp(subscription.failing_since),
        last_success_time=timestamp(subscription.last_success_time),
        former_secret_end_time=timestamp(subscription.former_secret_end_time),
        etag=subscription.etag,
        create_time=timestamp(subscription.create_time),
    )


def _delivery(delivery: Delivery, subject_id: str) -> notification_pb2.Delivery:
    is_mail = delivery.receiver == MAIL
    return notification_pb2.Delivery(
        id=delivery.id,
        kind=_KINDS[delivery.kind],
        subject_id=subject_id,
        subscription_id="" if is_mail else delivery.receiver,
        email=delivery.email,
        state=_DELIVERY_STATES[delivery.state],
        attempts=delivery.attempts,
        error_reason=delivery.error_reason,
        error_message=delivery.error_message,
        next_time=timestamp(delivery.due_time) if delivery.state in {*OPEN, DeliveryState.OFF} else None,
        create_time=timestamp(delivery.create_time),
        end_time=timestamp(delivery.end_time),
    )
