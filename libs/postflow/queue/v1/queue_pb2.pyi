import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LateAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LATE_ACTION_UNSPECIFIED: _ClassVar[LateAction]
    LATE_ACTION_PUBLISH: _ClassVar[LateAction]
    LATE_ACTION_RESLOT: _ClassVar[LateAction]
    LATE_ACTION_MISS: _ClassVar[LateAction]
LATE_ACTION_UNSPECIFIED: LateAction
LATE_ACTION_PUBLISH: LateAction
LATE_ACTION_RESLOT: LateAction
LATE_ACTION_MISS: LateAction

class Queue(_message.Message):
    __slots__ = ("social_account_id", "etag", "paused", "pause_time", "pauser", "pause_reason", "hold_pending", "schedule_enabled", "connected", "time_zone", "skip_next", "skipped_times", "late_policy", "pace", "scheduled_slots", "dispatched_slots", "overdue_slots", "next_time", "last_time", "empty_on", "next_free_time")
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PAUSE_TIME_FIELD_NUMBER: _ClassVar[int]
    PAUSER_FIELD_NUMBER: _ClassVar[int]
    PAUSE_REASON_FIELD_NUMBER: _ClassVar[int]
    HOLD_PENDING_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ENABLED_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    SKIP_NEXT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_TIMES_FIELD_NUMBER: _ClassVar[int]
    LATE_POLICY_FIELD_NUMBER: _ClassVar[int]
    PACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    DISPATCHED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_TIME_FIELD_NUMBER: _ClassVar[int]
    EMPTY_ON_FIELD_NUMBER: _ClassVar[int]
    NEXT_FREE_TIME_FIELD_NUMBER: _ClassVar[int]
    social_account_id: str
    etag: str
    paused: bool
    pause_time: _timestamp_pb2.Timestamp
    pauser: str
    pause_reason: str
    hold_pending: bool
    schedule_enabled: bool
    connected: bool
    time_zone: str
    skip_next: bool
    skipped_times: _containers.RepeatedCompositeFieldContainer[_timestamp_pb2.Timestamp]
    late_policy: LatePolicy
    pace: _duration_pb2.Duration
    scheduled_slots: int
    dispatched_slots: int
    overdue_slots: int
    next_time: _timestamp_pb2.Timestamp
    last_time: _timestamp_pb2.Timestamp
    empty_on: str
    next_free_time: _timestamp_pb2.Timestamp
    def __init__(self, social_account_id: _Optional[str] = ..., etag: _Optional[str] = ..., paused: _Optional[bool] = ..., pause_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., pauser: _Optional[str] = ..., pause_reason: _Optional[str] = ..., hold_pending: _Optional[bool] = ..., schedule_enabled: _Optional[bool] = ..., connected: _Optional[bool] = ..., time_zone: _Optional[str] = ..., skip_next: _Optional[bool] = ..., skipped_times: _Optional[_Iterable[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]]] = ..., late_policy: _Optional[_Union[LatePolicy, _Mapping]] = ..., pace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., scheduled_slots: _Optional[int] = ..., dispatched_slots: _Optional[int] = ..., overdue_slots: _Optional[int] = ..., next_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., empty_on: _Optional[str] = ..., next_free_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class LatePolicy(_message.Message):
    __slots__ = ("grace", "action")
    GRACE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    grace: _duration_pb2.Duration
    action: LateAction
    def __init__(self, grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., action: _Optional[_Union[LateAction, str]] = ...) -> None: ...
