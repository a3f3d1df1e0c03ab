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

class SlotMoveReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SLOT_MOVE_REASON_UNSPECIFIED: _ClassVar[SlotMoveReason]
    SLOT_MOVE_REASON_ZONE_DATA: _ClassVar[SlotMoveReason]
    SLOT_MOVE_REASON_REORDERED: _ClassVar[SlotMoveReason]
    SLOT_MOVE_REASON_MOVED: _ClassVar[SlotMoveReason]
    SLOT_MOVE_REASON_SHUFFLED: _ClassVar[SlotMoveReason]
    SLOT_MOVE_REASON_SHIFTED: _ClassVar[SlotMoveReason]
    SLOT_MOVE_REASON_RESUMED: _ClassVar[SlotMoveReason]
    SLOT_MOVE_REASON_LATE: _ClassVar[SlotMoveReason]
    SLOT_MOVE_REASON_DRAFT_TIME: _ClassVar[SlotMoveReason]
    SLOT_MOVE_REASON_TAKEN_BACK: _ClassVar[SlotMoveReason]

class SlotCancelReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SLOT_CANCEL_REASON_UNSPECIFIED: _ClassVar[SlotCancelReason]
    SLOT_CANCEL_REASON_REMOVED: _ClassVar[SlotCancelReason]
    SLOT_CANCEL_REASON_CLEARED: _ClassVar[SlotCancelReason]
    SLOT_CANCEL_REASON_OVERDUE: _ClassVar[SlotCancelReason]
SLOT_MOVE_REASON_UNSPECIFIED: SlotMoveReason
SLOT_MOVE_REASON_ZONE_DATA: SlotMoveReason
SLOT_MOVE_REASON_REORDERED: SlotMoveReason
SLOT_MOVE_REASON_MOVED: SlotMoveReason
SLOT_MOVE_REASON_SHUFFLED: SlotMoveReason
SLOT_MOVE_REASON_SHIFTED: SlotMoveReason
SLOT_MOVE_REASON_RESUMED: SlotMoveReason
SLOT_MOVE_REASON_LATE: SlotMoveReason
SLOT_MOVE_REASON_DRAFT_TIME: SlotMoveReason
SLOT_MOVE_REASON_TAKEN_BACK: SlotMoveReason
SLOT_CANCEL_REASON_UNSPECIFIED: SlotCancelReason
SLOT_CANCEL_REASON_REMOVED: SlotCancelReason
SLOT_CANCEL_REASON_CLEARED: SlotCancelReason
SLOT_CANCEL_REASON_OVERDUE: SlotCancelReason

class SlotScheduled(_message.Message):
    __slots__ = ("organization_id", "slot_id", "revision", "draft_id", "social_account_id", "targets", "schedule_time", "time_zone", "nominal_local_time", "slot_sequence", "not_after", "content_revision")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    NOMINAL_LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    SLOT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_REVISION_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    slot_id: str
    revision: int
    draft_id: str
    social_account_id: str
    targets: _containers.RepeatedCompositeFieldContainer[_target_pb2.Target]
    schedule_time: _timestamp_pb2.Timestamp
    time_zone: str
    nominal_local_time: str
    slot_sequence: int
    not_after: _timestamp_pb2.Timestamp
    content_revision: int
    def __init__(self, organization_id: _Optional[str] = ..., slot_id: _Optional[str] = ..., revision: _Optional[int] = ..., draft_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., targets: _Optional[_Iterable[_Union[_target_pb2.Target, _Mapping]]] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ..., nominal_local_time: _Optional[str] = ..., slot_sequence: _Optional[int] = ..., not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., content_revision: _Optional[int] = ...) -> None: ...

class SlotMoved(_message.Message):
    __slots__ = ("organization_id", "slot_id", "revision", "draft_id", "social_account_id", "targets", "schedule_time", "previous_schedule_time", "time_zone", "nominal_local_time", "reason", "slot_sequence", "not_after")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    NOMINAL_LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SLOT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    slot_id: str
    revision: int
    draft_id: str
    social_account_id: str
    targets: _containers.RepeatedCompositeFieldContainer[_target_pb2.Target]
    schedule_time: _timestamp_pb2.Timestamp
    previous_schedule_time: _timestamp_pb2.Timestamp
    time_zone: str
    nominal_local_time: str
    reason: SlotMoveReason
    slot_sequence: int
    not_after: _timestamp_pb2.Timestamp
    def __init__(self, organization_id: _Optional[str] = ..., slot_id: _Optional[str] = ..., revision: _Optional[int] = ..., draft_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., targets: _Optional[_Iterable[_Union[_target_pb2.Target, _Mapping]]] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., previous_schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ..., nominal_local_time: _Optional[str] = ..., reason: _Optional[_Union[SlotMoveReason, str]] = ..., slot_sequence: _Optional[int] = ..., not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SlotCanceled(_message.Message):
    __slots__ = ("organization_id", "slot_id", "revision", "draft_id", "social_account_id", "targets", "schedule_time", "slot_sequence", "reason")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    SLOT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    slot_id: str
    revision: int
    draft_id: str
    social_account_id: str
    targets: _containers.RepeatedCompositeFieldContainer[_target_pb2.Target]
    schedule_time: _timestamp_pb2.Timestamp
    slot_sequence: int
    reason: SlotCancelReason
    def __init__(self, organization_id: _Optional[str] = ..., slot_id: _Optional[str] = ..., revision: _Optional[int] = ..., draft_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., targets: _Optional[_Iterable[_Union[_target_pb2.Target, _Mapping]]] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., slot_sequence: _Optional[int] = ..., reason: _Optional[_Union[SlotCancelReason, str]] = ...) -> None: ...

class SlotRefused(_message.Message):
    __slots__ = ("organization_id", "draft_id", "social_account_id", "draft_version", "schedule_time", "reason", "message", "create_time")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    social_account_id: str
    draft_version: int
    schedule_time: _timestamp_pb2.Timestamp
    reason: str
    message: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., draft_version: _Optional[int] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
