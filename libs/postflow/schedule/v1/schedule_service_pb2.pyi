import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from postflow.schedule.v1 import account_schedule_pb2 as _account_schedule_pb2
from postflow.schedule.v1 import schedule_rule_pb2 as _schedule_rule_pb2
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
    __slots__ = ("organization_id", "social_account_id", "after", "before", "count", "known_schedule_version", "known_tzdata_version", "of_category_only", "category_id", "inside_send_window_only")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_SCHEDULE_VERSION_FIELD_NUMBER: _ClassVar[int]
    KNOWN_TZDATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    OF_CATEGORY_ONLY_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_ID_FIELD_NUMBER: _ClassVar[int]
    INSIDE_SEND_WINDOW_ONLY_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    after: _timestamp_pb2.Timestamp
    before: _timestamp_pb2.Timestamp
    count: int
    known_schedule_version: int
    known_tzdata_version: str
    of_category_only: bool
    category_id: str
    inside_send_window_only: bool
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., before: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., count: _Optional[int] = ..., known_schedule_version: _Optional[int] = ..., known_tzdata_version: _Optional[str] = ..., of_category_only: _Optional[bool] = ..., category_id: _Optional[str] = ..., inside_send_window_only: _Optional[bool] = ...) -> None: ...

class FindSlotTimesResponse(_message.Message):
    __slots__ = ("slot_times", "time_zone", "schedule_version", "searched_until", "max_posts_per_day", "enabled", "tzdata_version", "unchanged", "none_inside_send_window")
    SLOT_TIMES_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    MAX_POSTS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    TZDATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    NONE_INSIDE_SEND_WINDOW_FIELD_NUMBER: _ClassVar[int]
    slot_times: _containers.RepeatedCompositeFieldContainer[_account_schedule_pb2.SlotTime]
    time_zone: str
    schedule_version: int
    searched_until: _timestamp_pb2.Timestamp
    max_posts_per_day: int
    enabled: bool
    tzdata_version: str
    unchanged: bool
    none_inside_send_window: bool
    def __init__(self, slot_times: _Optional[_Iterable[_Union[_account_schedule_pb2.SlotTime, _Mapping]]] = ..., time_zone: _Optional[str] = ..., schedule_version: _Optional[int] = ..., searched_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., max_posts_per_day: _Optional[int] = ..., enabled: _Optional[bool] = ..., tzdata_version: _Optional[str] = ..., unchanged: _Optional[bool] = ..., none_inside_send_window: _Optional[bool] = ...) -> None: ...

class GetAccountScheduleRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ...) -> None: ...

class GetAccountScheduleResponse(_message.Message):
    __slots__ = ("account_schedule",)
    ACCOUNT_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    account_schedule: _account_schedule_pb2.AccountSchedule
    def __init__(self, account_schedule: _Optional[_Union[_account_schedule_pb2.AccountSchedule, _Mapping]] = ...) -> None: ...

class ListAccountSchedulesRequest(_message.Message):
    __slots__ = ("organization_id", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAccountSchedulesResponse(_message.Message):
    __slots__ = ("account_schedules", "next_page_token")
    ACCOUNT_SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    account_schedules: _containers.RepeatedCompositeFieldContainer[_account_schedule_pb2.AccountSchedule]
    next_page_token: str
    def __init__(self, account_schedules: _Optional[_Iterable[_Union[_account_schedule_pb2.AccountSchedule, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteAccountScheduleRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "etag", "force", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    etag: str
    force: bool
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., etag: _Optional[str] = ..., force: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteAccountScheduleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CheckSendWindowRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "time")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    time: _timestamp_pb2.Timestamp
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CheckSendWindowResponse(_message.Message):
    __slots__ = ("open", "open_time", "close_time", "time", "time_zone", "schedule_version")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    OPEN_TIME_FIELD_NUMBER: _ClassVar[int]
    CLOSE_TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_VERSION_FIELD_NUMBER: _ClassVar[int]
    open: bool
    open_time: _timestamp_pb2.Timestamp
    close_time: _timestamp_pb2.Timestamp
    time: _timestamp_pb2.Timestamp
    time_zone: str
    schedule_version: int
    def __init__(self, open: _Optional[bool] = ..., open_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., close_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ..., schedule_version: _Optional[int] = ...) -> None: ...

class CreateScheduleRuleRequest(_message.Message):
    __slots__ = ("organization_id", "schedule_rule", "schedule_rule_id", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_RULE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_RULE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    schedule_rule: _schedule_rule_pb2.ScheduleRule
    schedule_rule_id: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., schedule_rule: _Optional[_Union[_schedule_rule_pb2.ScheduleRule, _Mapping]] = ..., schedule_rule_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateScheduleRuleResponse(_message.Message):
    __slots__ = ("schedule_rule",)
    SCHEDULE_RULE_FIELD_NUMBER: _ClassVar[int]
    schedule_rule: _schedule_rule_pb2.ScheduleRule
    def __init__(self, schedule_rule: _Optional[_Union[_schedule_rule_pb2.ScheduleRule, _Mapping]] = ...) -> None: ...

class GetScheduleRuleRequest(_message.Message):
    __slots__ = ("organization_id", "schedule_rule_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_RULE_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    schedule_rule_id: str
    def __init__(self, organization_id: _Optional[str] = ..., schedule_rule_id: _Optional[str] = ...) -> None: ...

class GetScheduleRuleResponse(_message.Message):
    __slots__ = ("schedule_rule",)
    SCHEDULE_RULE_FIELD_NUMBER: _ClassVar[int]
    schedule_rule: _schedule_rule_pb2.ScheduleRule
    def __init__(self, schedule_rule: _Optional[_Union[_schedule_rule_pb2.ScheduleRule, _Mapping]] = ...) -> None: ...

class UpdateScheduleRuleRequest(_message.Message):
    __slots__ = ("organization_id", "schedule_rule", "update_mask", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_RULE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    schedule_rule: _schedule_rule_pb2.ScheduleRule
    update_mask: _field_mask_pb2.FieldMask
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., schedule_rule: _Optional[_Union[_schedule_rule_pb2.ScheduleRule, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateScheduleRuleResponse(_message.Message):
    __slots__ = ("schedule_rule",)
    SCHEDULE_RULE_FIELD_NUMBER: _ClassVar[int]
    schedule_rule: _schedule_rule_pb2.ScheduleRule
    def __init__(self, schedule_rule: _Optional[_Union[_schedule_rule_pb2.ScheduleRule, _Mapping]] = ...) -> None: ...

class DeleteScheduleRuleRequest(_message.Message):
    __slots__ = ("organization_id", "schedule_rule_id", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_RULE_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    schedule_rule_id: str
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., schedule_rule_id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteScheduleRuleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListScheduleRulesRequest(_message.Message):
    __slots__ = ("organization_id", "brand_id", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    brand_id: str
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., brand_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListScheduleRulesResponse(_message.Message):
    __slots__ = ("schedule_rules", "next_page_token")
    SCHEDULE_RULES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    schedule_rules: _containers.RepeatedCompositeFieldContainer[_schedule_rule_pb2.ScheduleRule]
    next_page_token: str
    def __init__(self, schedule_rules: _Optional[_Iterable[_Union[_schedule_rule_pb2.ScheduleRule, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListRuleTargetsRequest(_message.Message):
    __slots__ = ("organization_id", "brand_id", "after", "horizon", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    HORIZON_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    brand_id: str
    after: _timestamp_pb2.Timestamp
    horizon: _duration_pb2.Duration
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., brand_id: _Optional[str] = ..., after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., horizon: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRuleTargetsResponse(_message.Message):
    __slots__ = ("rule_targets", "next_page_token", "skipped_rules")
    RULE_TARGETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_RULES_FIELD_NUMBER: _ClassVar[int]
    rule_targets: _containers.RepeatedCompositeFieldContainer[_schedule_rule_pb2.RuleTarget]
    next_page_token: str
    skipped_rules: _containers.RepeatedCompositeFieldContainer[_schedule_rule_pb2.SkippedRule]
    def __init__(self, rule_targets: _Optional[_Iterable[_Union[_schedule_rule_pb2.RuleTarget, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., skipped_rules: _Optional[_Iterable[_Union[_schedule_rule_pb2.SkippedRule, _Mapping]]] = ...) -> None: ...
