import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from postflow.publisher.v1 import notification_pb2 as _notification_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PutRecipientsRequest(_message.Message):
    __slots__ = ("organization_id", "recipient_list", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_LIST_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    recipient_list: _notification_pb2.RecipientList
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., recipient_list: _Optional[_Union[_notification_pb2.RecipientList, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class PutRecipientsResponse(_message.Message):
    __slots__ = ("recipient_list",)
    RECIPIENT_LIST_FIELD_NUMBER: _ClassVar[int]
    recipient_list: _notification_pb2.RecipientList
    def __init__(self, recipient_list: _Optional[_Union[_notification_pb2.RecipientList, _Mapping]] = ...) -> None: ...

class GetRecipientsRequest(_message.Message):
    __slots__ = ("organization_id", "brand_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    brand_id: str
    def __init__(self, organization_id: _Optional[str] = ..., brand_id: _Optional[str] = ...) -> None: ...

class GetRecipientsResponse(_message.Message):
    __slots__ = ("recipient_list",)
    RECIPIENT_LIST_FIELD_NUMBER: _ClassVar[int]
    recipient_list: _notification_pb2.RecipientList
    def __init__(self, recipient_list: _Optional[_Union[_notification_pb2.RecipientList, _Mapping]] = ...) -> None: ...

class ListRecipientsRequest(_message.Message):
    __slots__ = ("organization_id", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRecipientsResponse(_message.Message):
    __slots__ = ("recipient_lists", "next_page_token")
    RECIPIENT_LISTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    recipient_lists: _containers.RepeatedCompositeFieldContainer[_notification_pb2.RecipientList]
    next_page_token: str
    def __init__(self, recipient_lists: _Optional[_Iterable[_Union[_notification_pb2.RecipientList, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CreateSubscriptionRequest(_message.Message):
    __slots__ = ("organization_id", "subscription_id", "subscription", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    subscription_id: str
    subscription: _notification_pb2.Subscription
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., subscription_id: _Optional[str] = ..., subscription: _Optional[_Union[_notification_pb2.Subscription, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateSubscriptionResponse(_message.Message):
    __slots__ = ("subscription", "secret")
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    subscription: _notification_pb2.Subscription
    secret: str
    def __init__(self, subscription: _Optional[_Union[_notification_pb2.Subscription, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class GetSubscriptionRequest(_message.Message):
    __slots__ = ("organization_id", "subscription_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    subscription_id: str
    def __init__(self, organization_id: _Optional[str] = ..., subscription_id: _Optional[str] = ...) -> None: ...

class GetSubscriptionResponse(_message.Message):
    __slots__ = ("subscription",)
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    subscription: _notification_pb2.Subscription
    def __init__(self, subscription: _Optional[_Union[_notification_pb2.Subscription, _Mapping]] = ...) -> None: ...

class ListSubscriptionsRequest(_message.Message):
    __slots__ = ("organization_id", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSubscriptionsResponse(_message.Message):
    __slots__ = ("subscriptions", "next_page_token")
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    subscriptions: _containers.RepeatedCompositeFieldContainer[_notification_pb2.Subscription]
    next_page_token: str
    def __init__(self, subscriptions: _Optional[_Iterable[_Union[_notification_pb2.Subscription, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateSubscriptionRequest(_message.Message):
    __slots__ = ("organization_id", "subscription_id", "subscription", "update_mask", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    subscription_id: str
    subscription: _notification_pb2.Subscription
    update_mask: _field_mask_pb2.FieldMask
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., subscription_id: _Optional[str] = ..., subscription: _Optional[_Union[_notification_pb2.Subscription, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateSubscriptionResponse(_message.Message):
    __slots__ = ("subscription",)
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    subscription: _notification_pb2.Subscription
    def __init__(self, subscription: _Optional[_Union[_notification_pb2.Subscription, _Mapping]] = ...) -> None: ...

class RotateSubscriptionSecretRequest(_message.Message):
    __slots__ = ("organization_id", "subscription_id", "overlap", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    subscription_id: str
    overlap: _duration_pb2.Duration
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., subscription_id: _Optional[str] = ..., overlap: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class RotateSubscriptionSecretResponse(_message.Message):
    __slots__ = ("subscription", "secret")
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    subscription: _notification_pb2.Subscription
    secret: str
    def __init__(self, subscription: _Optional[_Union[_notification_pb2.Subscription, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class DeleteSubscriptionRequest(_message.Message):
    __slots__ = ("organization_id", "subscription_id", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    subscription_id: str
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., subscription_id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteSubscriptionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDeliveriesRequest(_message.Message):
    __slots__ = ("organization_id", "subscription_id", "states", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    subscription_id: str
    states: _containers.RepeatedScalarFieldContainer[_notification_pb2.DeliveryState]
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., subscription_id: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_notification_pb2.DeliveryState, str]]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDeliveriesResponse(_message.Message):
    __slots__ = ("deliveries", "next_page_token")
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[_notification_pb2.Delivery]
    next_page_token: str
    def __init__(self, deliveries: _Optional[_Iterable[_Union[_notification_pb2.Delivery, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RetryDeliveryRequest(_message.Message):
    __slots__ = ("organization_id", "delivery_id", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    delivery_id: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., delivery_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RetryDeliveryResponse(_message.Message):
    __slots__ = ("delivery",)
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    delivery: _notification_pb2.Delivery
    def __init__(self, delivery: _Optional[_Union[_notification_pb2.Delivery, _Mapping]] = ...) -> None: ...

class SendTestNotificationRequest(_message.Message):
    __slots__ = ("organization_id", "subscription_id", "email", "brand_id", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    EMAIL_FIELD_NUMBER: _ClassVar[int]
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    subscription_id: str
    email: str
    brand_id: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., subscription_id: _Optional[str] = ..., email: _Optional[str] = ..., brand_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class SendTestNotificationResponse(_message.Message):
    __slots__ = ("delivery",)
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    delivery: _notification_pb2.Delivery
    def __init__(self, delivery: _Optional[_Union[_notification_pb2.Delivery, _Mapping]] = ...) -> None: ...
