import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NotificationKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NOTIFICATION_KIND_UNSPECIFIED: _ClassVar[NotificationKind]
    NOTIFICATION_KIND_POST_PUBLISHED: _ClassVar[NotificationKind]
    NOTIFICATION_KIND_POST_FAILED: _ClassVar[NotificationKind]
    NOTIFICATION_KIND_POST_NEEDS_ATTENTION: _ClassVar[NotificationKind]
    NOTIFICATION_KIND_ACCOUNT_DISCONNECTED: _ClassVar[NotificationKind]
    NOTIFICATION_KIND_ACCOUNT_EXPIRES_SOON: _ClassVar[NotificationKind]
    NOTIFICATION_KIND_TEST: _ClassVar[NotificationKind]
    NOTIFICATION_KIND_DIGEST: _ClassVar[NotificationKind]

class PublishedMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUBLISHED_MODE_UNSPECIFIED: _ClassVar[PublishedMode]
    PUBLISHED_MODE_EACH: _ClassVar[PublishedMode]
    PUBLISHED_MODE_DIGEST: _ClassVar[PublishedMode]
    PUBLISHED_MODE_NONE: _ClassVar[PublishedMode]

class RecipientRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECIPIENT_ROLE_UNSPECIFIED: _ClassVar[RecipientRole]
    RECIPIENT_ROLE_ADMIN: _ClassVar[RecipientRole]
    RECIPIENT_ROLE_EDITOR: _ClassVar[RecipientRole]

class SubscriptionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUBSCRIPTION_STATE_UNSPECIFIED: _ClassVar[SubscriptionState]
    SUBSCRIPTION_STATE_ACTIVE: _ClassVar[SubscriptionState]
    SUBSCRIPTION_STATE_PAUSED: _ClassVar[SubscriptionState]

class DeliveryState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELIVERY_STATE_UNSPECIFIED: _ClassVar[DeliveryState]
    DELIVERY_STATE_WAITING: _ClassVar[DeliveryState]
    DELIVERY_STATE_PAUSED: _ClassVar[DeliveryState]
    DELIVERY_STATE_OFF: _ClassVar[DeliveryState]
    DELIVERY_STATE_DELIVERED: _ClassVar[DeliveryState]
    DELIVERY_STATE_FAILED: _ClassVar[DeliveryState]
    DELIVERY_STATE_SKIPPED: _ClassVar[DeliveryState]
    DELIVERY_STATE_CANCELED: _ClassVar[DeliveryState]
NOTIFICATION_KIND_UNSPECIFIED: NotificationKind
NOTIFICATION_KIND_POST_PUBLISHED: NotificationKind
NOTIFICATION_KIND_POST_FAILED: NotificationKind
NOTIFICATION_KIND_POST_NEEDS_ATTENTION: NotificationKind
NOTIFICATION_KIND_ACCOUNT_DISCONNECTED: NotificationKind
NOTIFICATION_KIND_ACCOUNT_EXPIRES_SOON: NotificationKind
NOTIFICATION_KIND_TEST: NotificationKind
NOTIFICATION_KIND_DIGEST: NotificationKind
PUBLISHED_MODE_UNSPECIFIED: PublishedMode
PUBLISHED_MODE_EACH: PublishedMode
PUBLISHED_MODE_DIGEST: PublishedMode
PUBLISHED_MODE_NONE: PublishedMode
RECIPIENT_ROLE_UNSPECIFIED: RecipientRole
RECIPIENT_ROLE_ADMIN: RecipientRole
RECIPIENT_ROLE_EDITOR: RecipientRole
SUBSCRIPTION_STATE_UNSPECIFIED: SubscriptionState
SUBSCRIPTION_STATE_ACTIVE: SubscriptionState
SUBSCRIPTION_STATE_PAUSED: SubscriptionState
DELIVERY_STATE_UNSPECIFIED: DeliveryState
DELIVERY_STATE_WAITING: DeliveryState
DELIVERY_STATE_PAUSED: DeliveryState
DELIVERY_STATE_OFF: DeliveryState
DELIVERY_STATE_DELIVERED: DeliveryState
DELIVERY_STATE_FAILED: DeliveryState
DELIVERY_STATE_SKIPPED: DeliveryState
DELIVERY_STATE_CANCELED: DeliveryState

class Recipient(_message.Message):
    __slots__ = ("email", "name", "role")
    EMAIL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    email: str
    name: str
    role: RecipientRole
    def __init__(self, email: _Optional[str] = ..., name: _Optional[str] = ..., role: _Optional[_Union[RecipientRole, str]] = ...) -> None: ...

class Preferences(_message.Message):
    __slots__ = ("kinds", "published", "digest_hour")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    DIGEST_HOUR_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[NotificationKind]
    published: PublishedMode
    digest_hour: int
    def __init__(self, kinds: _Optional[_Iterable[_Union[NotificationKind, str]]] = ..., published: _Optional[_Union[PublishedMode, str]] = ..., digest_hour: _Optional[int] = ...) -> None: ...

class RecipientList(_message.Message):
    __slots__ = ("brand_id", "name", "time_zone", "recipients", "preferences", "announced", "etag", "update_time")
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    RECIPIENTS_FIELD_NUMBER: _ClassVar[int]
    PREFERENCES_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCED_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    brand_id: str
    name: str
    time_zone: str
    recipients: _containers.RepeatedCompositeFieldContainer[Recipient]
    preferences: Preferences
    announced: bool
    etag: str
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, brand_id: _Optional[str] = ..., name: _Optional[str] = ..., time_zone: _Optional[str] = ..., recipients: _Optional[_Iterable[_Union[Recipient, _Mapping]]] = ..., preferences: _Optional[_Union[Preferences, _Mapping]] = ..., announced: _Optional[bool] = ..., etag: _Optional[str] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Subscription(_message.Message):
    __slots__ = ("id", "url", "kinds", "brand_ids", "description", "state", "state_reason", "failures", "failing_since", "last_success_time", "former_secret_end_time", "etag", "create_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    BRAND_IDS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    FAILING_SINCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SUCCESS_TIME_FIELD_NUMBER: _ClassVar[int]
    FORMER_SECRET_END_TIME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    url: str
    kinds: _containers.RepeatedScalarFieldContainer[NotificationKind]
    brand_ids: _containers.RepeatedScalarFieldContainer[str]
    description: str
    state: SubscriptionState
    state_reason: str
    failures: int
    failing_since: _timestamp_pb2.Timestamp
    last_success_time: _timestamp_pb2.Timestamp
    former_secret_end_time: _timestamp_pb2.Timestamp
    etag: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., url: _Optional[str] = ..., kinds: _Optional[_Iterable[_Union[NotificationKind, str]]] = ..., brand_ids: _Optional[_Iterable[str]] = ..., description: _Optional[str] = ..., state: _Optional[_Union[SubscriptionState, str]] = ..., state_reason: _Optional[str] = ..., failures: _Optional[int] = ..., failing_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_success_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., former_secret_end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("id", "kind", "subject_id", "subscription_id", "email", "state", "attempts", "error_reason", "error_message", "next_time", "create_time", "end_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    EMAIL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NEXT_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: NotificationKind
    subject_id: str
    subscription_id: str
    email: str
    state: DeliveryState
    attempts: int
    error_reason: str
    error_message: str
    next_time: _timestamp_pb2.Timestamp
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[_Union[NotificationKind, str]] = ..., subject_id: _Optional[str] = ..., subscription_id: _Optional[str] = ..., email: _Optional[str] = ..., state: _Optional[_Union[DeliveryState, str]] = ..., attempts: _Optional[int] = ..., error_reason: _Optional[str] = ..., error_message: _Optional[str] = ..., next_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
