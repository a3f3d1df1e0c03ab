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

class DayOfWeek(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DAY_OF_WEEK_UNSPECIFIED: _ClassVar[DayOfWeek]
    DAY_OF_WEEK_MONDAY: _ClassVar[DayOfWeek]
    DAY_OF_WEEK_TUESDAY: _ClassVar[DayOfWeek]
    DAY_OF_WEEK_WEDNESDAY: _ClassVar[DayOfWeek]
    DAY_OF_WEEK_THURSDAY: _ClassVar[DayOfWeek]
    DAY_OF_WEEK_FRIDAY: _ClassVar[DayOfWeek]
    DAY_OF_WEEK_SATURDAY: _ClassVar[DayOfWeek]
    DAY_OF_WEEK_SUNDAY: _ClassVar[DayOfWeek]
DAY_OF_WEEK_UNSPECIFIED: DayOfWeek
DAY_OF_WEEK_MONDAY: DayOfWeek
DAY_OF_WEEK_TUESDAY: DayOfWeek
DAY_OF_WEEK_WEDNESDAY: DayOfWeek
DAY_OF_WEEK_THURSDAY: DayOfWeek
DAY_OF_WEEK_FRIDAY: DayOfWeek
DAY_OF_WEEK_SATURDAY: DayOfWeek
DAY_OF_WEEK_SUNDAY: DayOfWeek

class AccountSchedule(_message.Message):
    __slots__ = ("social_account_id", "name", "time_zone", "weekly_slots", "max_posts_per_day", "enabled", "etag", "version", "create_time", "update_time", "send_window", "min_spacing", "tzdata_version")
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    WEEKLY_SLOTS_FIELD_NUMBER: _ClassVar[int]
    MAX_POSTS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SEND_WINDOW_FIELD_NUMBER: _ClassVar[int]
    MIN_SPACING_FIELD_NUMBER: _ClassVar[int]
    TZDATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    social_account_id: str
    name: str
    time_zone: str
    weekly_slots: _containers.RepeatedCompositeFieldContainer[WeeklySlot]
    max_posts_per_day: int
    enabled: bool
    etag: str
    version: int
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    send_window: SendWindow
    min_spacing: _duration_pb2.Duration
    tzdata_version: str
    def __init__(self, social_account_id: _Optional[str] = ..., name: _Optional[str] = ..., time_zone: _Optional[str] = ..., weekly_slots: _Optional[_Iterable[_Union[WeeklySlot, _Mapping]]] = ..., max_posts_per_day: _Optional[int] = ..., enabled: _Optional[bool] = ..., etag: _Optional[str] = ..., version: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., send_window: _Optional[_Union[SendWindow, _Mapping]] = ..., min_spacing: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., tzdata_version: _Optional[str] = ...) -> None: ...

class SendWindow(_message.Message):
    __slots__ = ("days_of_week", "start", "end")
    DAYS_OF_WEEK_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    days_of_week: _containers.RepeatedScalarFieldContainer[DayOfWeek]
    start: LocalTime
    end: LocalTime
    def __init__(self, days_of_week: _Optional[_Iterable[_Union[DayOfWeek, str]]] = ..., start: _Optional[_Union[LocalTime, _Mapping]] = ..., end: _Optional[_Union[LocalTime, _Mapping]] = ...) -> None: ...

class LocalTime(_message.Message):
    __slots__ = ("hour", "minute")
    HOUR_FIELD_NUMBER: _ClassVar[int]
    MINUTE_FIELD_NUMBER: _ClassVar[int]
    hour: int
    minute: int
    def __init__(self, hour: _Optional[int] = ..., minute: _Optional[int] = ...) -> None: ...

class WeeklySlot(_message.Message):
    __slots__ = ("day_of_week", "hour", "minute", "category_id")
    DAY_OF_WEEK_FIELD_NUMBER: _ClassVar[int]
    HOUR_FIELD_NUMBER: _ClassVar[int]
    MINUTE_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_ID_FIELD_NUMBER: _ClassVar[int]
    day_of_week: DayOfWeek
    hour: int
    minute: int
    category_id: str
    def __init__(self, day_of_week: _Optional[_Union[DayOfWeek, str]] = ..., hour: _Optional[int] = ..., minute: _Optional[int] = ..., category_id: _Optional[str] = ...) -> None: ...

class SlotTime(_message.Message):
    __slots__ = ("time", "local_date", "local_time", "utc_offset_seconds", "shifted", "outside_send_window", "nominal_local_time", "category_id")
    TIME_FIELD_NUMBER: _ClassVar[int]
    LOCAL_DATE_FIELD_NUMBER: _ClassVar[int]
    LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    UTC_OFFSET_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SHIFTED_FIELD_NUMBER: _ClassVar[int]
    OUTSIDE_SEND_WINDOW_FIELD_NUMBER: _ClassVar[int]
    NOMINAL_LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_ID_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    local_date: str
    local_time: str
    utc_offset_seconds: int
    shifted: bool
    outside_send_window: bool
    nominal_local_time: str
    category_id: str
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., local_date: _Optional[str] = ..., local_time: _Optional[str] = ..., utc_offset_seconds: _Optional[int] = ..., shifted: _Optional[bool] = ..., outside_send_window: _Optional[bool] = ..., nominal_local_time: _Optional[str] = ..., category_id: _Optional[str] = ...) -> None: ...
