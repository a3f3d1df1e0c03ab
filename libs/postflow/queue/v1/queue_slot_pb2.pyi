import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.target.v1 import target_pb2 as _target_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueueSlotState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUEUE_SLOT_STATE_UNSPECIFIED: _ClassVar[QueueSlotState]
    QUEUE_SLOT_STATE_SCHEDULED: _ClassVar[QueueSlotState]
    QUEUE_SLOT_STATE_DISPATCHED: _ClassVar[QueueSlotState]
    QUEUE_SLOT_STATE_PUBLISHED: _ClassVar[QueueSlotState]
    QUEUE_SLOT_STATE_PARTIALLY_PUBLISHED: _ClassVar[QueueSlotState]
    QUEUE_SLOT_STATE_FAILED: _ClassVar[QueueSlotState]
    QUEUE_SLOT_STATE_MISSED: _ClassVar[QueueSlotState]
    QUEUE_SLOT_STATE_NEEDS_ATTENTION: _ClassVar[QueueSlotState]
    QUEUE_SLOT_STATE_CANCELED: _ClassVar[QueueSlotState]

class QueueSlotOrigin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUEUE_SLOT_ORIGIN_UNSPECIFIED: _ClassVar[QueueSlotOrigin]
    QUEUE_SLOT_ORIGIN_QUEUE: _ClassVar[QueueSlotOrigin]
    QUEUE_SLOT_ORIGIN_EXACT: _ClassVar[QueueSlotOrigin]
    QUEUE_SLOT_ORIGIN_DRAFT: _ClassVar[QueueSlotOrigin]
QUEUE_SLOT_STATE_UNSPECIFIED: QueueSlotState
QUEUE_SLOT_STATE_SCHEDULED: QueueSlotState
QUEUE_SLOT_STATE_DISPATCHED: QueueSlotState
QUEUE_SLOT_STATE_PUBLISHED: QueueSlotState
QUEUE_SLOT_STATE_PARTIALLY_PUBLISHED: QueueSlotState
QUEUE_SLOT_STATE_FAILED: QueueSlotState
QUEUE_SLOT_STATE_MISSED: QueueSlotState
QUEUE_SLOT_STATE_NEEDS_ATTENTION: QueueSlotState
QUEUE_SLOT_STATE_CANCELED: QueueSlotState
QUEUE_SLOT_ORIGIN_UNSPECIFIED: QueueSlotOrigin
QUEUE_SLOT_ORIGIN_QUEUE: QueueSlotOrigin
QUEUE_SLOT_ORIGIN_EXACT: QueueSlotOrigin
QUEUE_SLOT_ORIGIN_DRAFT: QueueSlotOrigin

class QueueSlot(_message.Message):
    __slots__ = ("id", "social_account_id", "draft_id", "schedule_time", "time_zone", "local_date", "local_time", "state", "origin", "revision", "targets", "not_after", "expected_time", "publish_time", "create_time", "update_time", "state_reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_DATE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_TIME_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    social_account_id: str
    draft_id: str
    schedule_time: _timestamp_pb2.Timestamp
    time_zone: str
    local_date: str
    local_time: str
    state: QueueSlotState
    origin: QueueSlotOrigin
    revision: int
    targets: _containers.RepeatedCompositeFieldContainer[QueueSlotTarget]
    not_after: _timestamp_pb2.Timestamp
    expected_time: _timestamp_pb2.Timestamp
    publish_time: _timestamp_pb2.Timestamp
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    state_reason: str
    def __init__(self, id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ..., local_date: _Optional[str] = ..., local_time: _Optional[str] = ..., state: _Optional[_Union[QueueSlotState, str]] = ..., origin: _Optional[_Union[QueueSlotOrigin, str]] = ..., revision: _Optional[int] = ..., targets: _Optional[_Iterable[_Union[QueueSlotTarget, _Mapping]]] = ..., not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expected_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., publish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., state_reason: _Optional[str] = ...) -> None: ...

class QueueSlotTarget(_message.Message):
    __slots__ = ("target", "post_job_id", "post_job_state", "external_url", "error_message", "state_reason")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_STATE_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_URL_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    target: _target_pb2.Target
    post_job_id: str
    post_job_state: str
    external_url: str
    error_message: str
    state_reason: str
    def __init__(self, target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., post_job_id: _Optional[str] = ..., post_job_state: _Optional[str] = ..., external_url: _Optional[str] = ..., error_message: _Optional[str] = ..., state_reason: _Optional[str] = ...) -> None: ...
