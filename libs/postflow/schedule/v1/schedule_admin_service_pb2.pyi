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

class ZoneChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ZONE_CHANGE_KIND_UNSPECIFIED: _ClassVar[ZoneChangeKind]
    ZONE_CHANGE_KIND_ACCOUNT_SCHEDULE: _ClassVar[ZoneChangeKind]
    ZONE_CHANGE_KIND_SCHEDULE_RULE: _ClassVar[ZoneChangeKind]
    ZONE_CHANGE_KIND_TIMER: _ClassVar[ZoneChangeKind]
ZONE_CHANGE_KIND_UNSPECIFIED: ZoneChangeKind
ZONE_CHANGE_KIND_ACCOUNT_SCHEDULE: ZoneChangeKind
ZONE_CHANGE_KIND_SCHEDULE_RULE: ZoneChangeKind
ZONE_CHANGE_KIND_TIMER: ZoneChangeKind

class ZoneChange(_message.Message):
    __slots__ = ("organization_id", "kind", "id", "time_zone", "announced_tzdata_version", "moved_times")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCED_TZDATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    MOVED_TIMES_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    kind: ZoneChangeKind
    id: str
    time_zone: str
    announced_tzdata_version: str
    moved_times: _containers.RepeatedCompositeFieldContainer[MovedTime]
    def __init__(self, organization_id: _Optional[str] = ..., kind: _Optional[_Union[ZoneChangeKind, str]] = ..., id: _Optional[str] = ..., time_zone: _Optional[str] = ..., announced_tzdata_version: _Optional[str] = ..., moved_times: _Optional[_Iterable[_Union[MovedTime, _Mapping]]] = ...) -> None: ...

class MovedTime(_message.Message):
    __slots__ = ("nominal_local_time", "old_time", "new_time")
    NOMINAL_LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    OLD_TIME_FIELD_NUMBER: _ClassVar[int]
    NEW_TIME_FIELD_NUMBER: _ClassVar[int]
    nominal_local_time: str
    old_time: _timestamp_pb2.Timestamp
    new_time: _timestamp_pb2.Timestamp
    def __init__(self, nominal_local_time: _Optional[str] = ..., old_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., new_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListZoneChangesRequest(_message.Message):
    __slots__ = ("organization_id", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListZoneChangesResponse(_message.Message):
    __slots__ = ("zone_changes", "next_page_token", "tzdata_version")
    ZONE_CHANGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TZDATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    zone_changes: _containers.RepeatedCompositeFieldContainer[ZoneChange]
    next_page_token: str
    tzdata_version: str
    def __init__(self, zone_changes: _Optional[_Iterable[_Union[ZoneChange, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., tzdata_version: _Optional[str] = ...) -> None: ...

class ApplyZoneChangesRequest(_message.Message):
    __slots__ = ("organization_id",)
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    def __init__(self, organization_id: _Optional[str] = ...) -> None: ...

class ApplyZoneChangesResponse(_message.Message):
    __slots__ = ("account_schedules", "schedule_rules", "timers", "done", "tzdata_version")
    ACCOUNT_SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_RULES_FIELD_NUMBER: _ClassVar[int]
    TIMERS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TZDATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    account_schedules: int
    schedule_rules: int
    timers: int
    done: bool
    tzdata_version: str
    def __init__(self, account_schedules: _Optional[int] = ..., schedule_rules: _Optional[int] = ..., timers: _Optional[int] = ..., done: _Optional[bool] = ..., tzdata_version: _Optional[str] = ...) -> None: ...
