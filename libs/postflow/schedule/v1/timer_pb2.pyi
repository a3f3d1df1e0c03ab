import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TimerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TIMER_STATE_UNSPECIFIED: _ClassVar[TimerState]
    TIMER_STATE_ACTIVE: _ClassVar[TimerState]
    TIMER_STATE_PAUSED: _ClassVar[TimerState]
    TIMER_STATE_FINISHED: _ClassVar[TimerState]
    TIMER_STATE_FAULTY: _ClassVar[TimerState]

class DstPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DST_POLICY_UNSPECIFIED: _ClassVar[DstPolicy]
    DST_POLICY_CRON: _ClassVar[DstPolicy]
    DST_POLICY_ONCE: _ClassVar[DstPolicy]

class MisfirePolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MISFIRE_POLICY_UNSPECIFIED: _ClassVar[MisfirePolicy]
    MISFIRE_POLICY_FIRE_ONCE: _ClassVar[MisfirePolicy]
    MISFIRE_POLICY_SKIP: _ClassVar[MisfirePolicy]
    MISFIRE_POLICY_FIRE_ALL: _ClassVar[MisfirePolicy]
TIMER_STATE_UNSPECIFIED: TimerState
TIMER_STATE_ACTIVE: TimerState
TIMER_STATE_PAUSED: TimerState
TIMER_STATE_FINISHED: TimerState
TIMER_STATE_FAULTY: TimerState
DST_POLICY_UNSPECIFIED: DstPolicy
DST_POLICY_CRON: DstPolicy
DST_POLICY_ONCE: DstPolicy
MISFIRE_POLICY_UNSPECIFIED: MisfirePolicy
MISFIRE_POLICY_FIRE_ONCE: MisfirePolicy
MISFIRE_POLICY_SKIP: MisfirePolicy
MISFIRE_POLICY_FIRE_ALL: MisfirePolicy

class Timer(_message.Message):
    __slots__ = ("id", "topic", "payload", "fire_time", "delay", "cron", "time_zone", "dst_policy", "repeat_until", "misfire_policy", "catch_up_interval", "skip_after", "auto_remove", "state", "next_fire_time", "last_fire_time", "last_occurrence_key", "fire_count", "etag", "create_time", "update_time", "tzdata_version", "fault")
    ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    FIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    DST_POLICY_FIELD_NUMBER: _ClassVar[int]
    REPEAT_UNTIL_FIELD_NUMBER: _ClassVar[int]
    MISFIRE_POLICY_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    SKIP_AFTER_FIELD_NUMBER: _ClassVar[int]
    AUTO_REMOVE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_FIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_OCCURRENCE_KEY_FIELD_NUMBER: _ClassVar[int]
    FIRE_COUNT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    TZDATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    id: str
    topic: str
    payload: bytes
    fire_time: _timestamp_pb2.Timestamp
    delay: _duration_pb2.Duration
    cron: str
    time_zone: str
    dst_policy: DstPolicy
    repeat_until: _timestamp_pb2.Timestamp
    misfire_policy: MisfirePolicy
    catch_up_interval: _duration_pb2.Duration
    skip_after: _duration_pb2.Duration
    auto_remove: bool
    state: TimerState
    next_fire_time: _timestamp_pb2.Timestamp
    last_fire_time: _timestamp_pb2.Timestamp
    last_occurrence_key: str
    fire_count: int
    etag: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    tzdata_version: str
    fault: str
    def __init__(self, id: _Optional[str] = ..., topic: _Optional[str] = ..., payload: _Optional[bytes] = ..., fire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., dst_policy: _Optional[_Union[DstPolicy, str]] = ..., repeat_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., misfire_policy: _Optional[_Union[MisfirePolicy, str]] = ..., catch_up_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., skip_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., auto_remove: _Optional[bool] = ..., state: _Optional[_Union[TimerState, str]] = ..., next_fire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_fire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_occurrence_key: _Optional[str] = ..., fire_count: _Optional[int] = ..., etag: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tzdata_version: _Optional[str] = ..., fault: _Optional[str] = ...) -> None: ...
