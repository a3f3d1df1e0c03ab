import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.schedule.v1 import account_schedule_pb2 as _account_schedule_pb2
from postflow.schedule.v1 import schedule_rule_pb2 as _schedule_rule_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AccountScheduleChanged(_message.Message):
    __slots__ = ("organization_id", "account_schedule", "deleted")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    account_schedule: _account_schedule_pb2.AccountSchedule
    deleted: bool
    def __init__(self, organization_id: _Optional[str] = ..., account_schedule: _Optional[_Union[_account_schedule_pb2.AccountSchedule, _Mapping]] = ..., deleted: _Optional[bool] = ...) -> None: ...

class ScheduleRuleChanged(_message.Message):
    __slots__ = ("organization_id", "schedule_rule", "deleted")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_RULE_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    schedule_rule: _schedule_rule_pb2.ScheduleRule
    deleted: bool
    def __init__(self, organization_id: _Optional[str] = ..., schedule_rule: _Optional[_Union[_schedule_rule_pb2.ScheduleRule, _Mapping]] = ..., deleted: _Optional[bool] = ...) -> None: ...

class TimerFired(_message.Message):
    __slots__ = ("organization_id", "timer_id", "topic", "payload", "occurrence_key", "due_time", "fire_time", "manual")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    OCCURRENCE_KEY_FIELD_NUMBER: _ClassVar[int]
    DUE_TIME_FIELD_NUMBER: _ClassVar[int]
    FIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    MANUAL_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    timer_id: str
    topic: str
    payload: bytes
    occurrence_key: str
    due_time: _timestamp_pb2.Timestamp
    fire_time: _timestamp_pb2.Timestamp
    manual: bool
    def __init__(self, organization_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., topic: _Optional[str] = ..., payload: _Optional[bytes] = ..., occurrence_key: _Optional[str] = ..., due_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., fire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., manual: _Optional[bool] = ...) -> None: ...
