import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from postflow.schedule.v1 import account_schedule_pb2 as _account_schedule_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AssetPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ASSET_POLICY_UNSPECIFIED: _ClassVar[AssetPolicy]
    ASSET_POLICY_OPTIONAL: _ClassVar[AssetPolicy]
    ASSET_POLICY_REQUIRED: _ClassVar[AssetPolicy]
    ASSET_POLICY_NONE: _ClassVar[AssetPolicy]
ASSET_POLICY_UNSPECIFIED: AssetPolicy
ASSET_POLICY_OPTIONAL: AssetPolicy
ASSET_POLICY_REQUIRED: AssetPolicy
ASSET_POLICY_NONE: AssetPolicy

class ScheduleRule(_message.Message):
    __slots__ = ("id", "brand_id", "name", "time_zone", "weekly_slots", "rrule", "start_time", "start_date", "end_date", "excluded_dates", "channels", "category_id", "asset_policy", "enabled", "etag", "version", "create_time", "update_time", "tzdata_version")
    ID_FIELD_NUMBER: _ClassVar[int]
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    WEEKLY_SLOTS_FIELD_NUMBER: _ClassVar[int]
    RRULE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    START_DATE_FIELD_NUMBER: _ClassVar[int]
    END_DATE_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_DATES_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_ID_FIELD_NUMBER: _ClassVar[int]
    ASSET_POLICY_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    TZDATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    brand_id: str
    name: str
    time_zone: str
    weekly_slots: _containers.RepeatedCompositeFieldContainer[_account_schedule_pb2.WeeklySlot]
    rrule: str
    start_time: _account_schedule_pb2.LocalTime
    start_date: str
    end_date: str
    excluded_dates: _containers.RepeatedScalarFieldContainer[str]
    channels: _containers.RepeatedScalarFieldContainer[str]
    category_id: str
    asset_policy: AssetPolicy
    enabled: bool
    etag: str
    version: int
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    tzdata_version: str
    def __init__(self, id: _Optional[str] = ..., brand_id: _Optional[str] = ..., name: _Optional[str] = ..., time_zone: _Optional[str] = ..., weekly_slots: _Optional[_Iterable[_Union[_account_schedule_pb2.WeeklySlot, _Mapping]]] = ..., rrule: _Optional[str] = ..., start_time: _Optional[_Union[_account_schedule_pb2.LocalTime, _Mapping]] = ..., start_date: _Optional[str] = ..., end_date: _Optional[str] = ..., excluded_dates: _Optional[_Iterable[str]] = ..., channels: _Optional[_Iterable[str]] = ..., category_id: _Optional[str] = ..., asset_policy: _Optional[_Union[AssetPolicy, str]] = ..., enabled: _Optional[bool] = ..., etag: _Optional[str] = ..., version: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tzdata_version: _Optional[str] = ...) -> None: ...

class RuleTarget(_message.Message):
    __slots__ = ("key", "schedule_rule_id", "time", "local_date", "local_time", "utc_offset_seconds", "shifted", "time_zone", "channels", "category_id", "asset_policy", "schedule_rule_version")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_RULE_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    LOCAL_DATE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    UTC_OFFSET_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SHIFTED_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_ID_FIELD_NUMBER: _ClassVar[int]
    ASSET_POLICY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_RULE_VERSION_FIELD_NUMBER: _ClassVar[int]
    key: str
    schedule_rule_id: str
    time: _timestamp_pb2.Timestamp
    local_date: str
    local_time: str
    utc_offset_seconds: int
    shifted: bool
    time_zone: str
    channels: _containers.RepeatedScalarFieldContainer[str]
    category_id: str
    asset_policy: AssetPolicy
    schedule_rule_version: int
    def __init__(self, key: _Optional[str] = ..., schedule_rule_id: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., local_date: _Optional[str] = ..., local_time: _Optional[str] = ..., utc_offset_seconds: _Optional[int] = ..., shifted: _Optional[bool] = ..., time_zone: _Optional[str] = ..., channels: _Optional[_Iterable[str]] = ..., category_id: _Optional[str] = ..., asset_policy: _Optional[_Union[AssetPolicy, str]] = ..., schedule_rule_version: _Optional[int] = ...) -> None: ...

class SkippedRule(_message.Message):
    __slots__ = ("schedule_rule_id", "reason", "time_zone")
    SCHEDULE_RULE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    schedule_rule_id: str
    reason: str
    time_zone: str
    def __init__(self, schedule_rule_id: _Optional[str] = ..., reason: _Optional[str] = ..., time_zone: _Optional[str] = ...) -> None: ...
