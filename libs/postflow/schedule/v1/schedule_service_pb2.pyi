import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from postflow.schedule.v1 import account_schedule_pb2 as _account_schedule_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PutAccountScheduleRequest(_message.Message):
    __slots__ = ("organization_id", "account_schedule", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    account_schedule: _account_schedule_pb2.AccountSchedule
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., account_schedule: _Optional[_Union[_account_schedule_pb2.AccountSchedule, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class PutAccountScheduleResponse(_message.Message):
    __slots__ = ("account_schedule",)
    ACCOUNT_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    account_schedule: _account_schedule_pb2.AccountSchedule
    def __init__(self, account_schedule: _Optional[_Union[_account_schedule_pb2.AccountSchedule, _Mapping]] = ...) -> None: ...

class FindSlotTimesRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "after", "before", "count")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    after: _timestamp_pb2.Timestamp
    before: _timestamp_pb2.Timestamp
    count: int
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., before: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., count: _Optional[int] = ...) -> None: ...

class FindSlotTimesResponse(_message.Message):
    __slots__ = ("slot_times", "time_zone", "schedule_version", "searched_until")
    SLOT_TIMES_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    slot_times: _containers.RepeatedCompositeFieldContainer[_account_schedule_pb2.SlotTime]
    time_zone: str
    schedule_version: int
    searched_until: _timestamp_pb2.Timestamp
    def __init__(self, slot_times: _Optional[_Iterable[_Union[_account_schedule_pb2.SlotTime, _Mapping]]] = ..., time_zone: _Optional[str] = ..., schedule_version: _Optional[int] = ..., searched_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
