import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.publisher.v1 import post_job_pb2 as _post_job_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReplayPostJobEventsRequest(_message.Message):
    __slots__ = ("organization_id", "draft_id", "changed_since", "states", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    CHANGED_SINCE_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    changed_since: _timestamp_pb2.Timestamp
    states: _containers.RepeatedScalarFieldContainer[_post_job_pb2.PostJobState]
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., changed_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., states: _Optional[_Iterable[_Union[_post_job_pb2.PostJobState, str]]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ReplayPostJobEventsResponse(_message.Message):
    __slots__ = ("announced", "next_page_token")
    ANNOUNCED_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    announced: int
    next_page_token: str
    def __init__(self, announced: _Optional[int] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetSafeModeRequest(_message.Message):
    __slots__ = ("organization_id",)
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    def __init__(self, organization_id: _Optional[str] = ...) -> None: ...

class GetSafeModeResponse(_message.Message):
    __slots__ = ("safe_mode",)
    SAFE_MODE_FIELD_NUMBER: _ClassVar[int]
    safe_mode: SafeMode
    def __init__(self, safe_mode: _Optional[_Union[SafeMode, _Mapping]] = ...) -> None: ...

class SafeMode(_message.Message):
    __slots__ = ("active", "reason", "enter_time", "restored_time", "mark_time", "summary", "leave_time", "left_by")
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ENTER_TIME_FIELD_NUMBER: _ClassVar[int]
    RESTORED_TIME_FIELD_NUMBER: _ClassVar[int]
    MARK_TIME_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    LEAVE_TIME_FIELD_NUMBER: _ClassVar[int]
    LEFT_BY_FIELD_NUMBER: _ClassVar[int]
    active: bool
    reason: str
    enter_time: _timestamp_pb2.Timestamp
    restored_time: _timestamp_pb2.Timestamp
    mark_time: _timestamp_pb2.Timestamp
    summary: SafeModeSummary
    leave_time: _timestamp_pb2.Timestamp
    left_by: str
    def __init__(self, active: _Optional[bool] = ..., reason: _Optional[str] = ..., enter_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., restored_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., mark_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., summary: _Optional[_Union[SafeModeSummary, _Mapping]] = ..., leave_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., left_by: _Optional[str] = ...) -> None: ...

class SafeModeSummary(_message.Message):
    __slots__ = ("open", "published", "absent", "needs_attention", "recreated", "untouched")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    NEEDS_ATTENTION_FIELD_NUMBER: _ClassVar[int]
    RECREATED_FIELD_NUMBER: _ClassVar[int]
    UNTOUCHED_FIELD_NUMBER: _ClassVar[int]
    open: int
    published: int
    absent: int
    needs_attention: int
    recreated: int
    untouched: int
    def __init__(self, open: _Optional[int] = ..., published: _Optional[int] = ..., absent: _Optional[int] = ..., needs_attention: _Optional[int] = ..., recreated: _Optional[int] = ..., untouched: _Optional[int] = ...) -> None: ...

class LeaveSafeModeRequest(_message.Message):
    __slots__ = ("organization_id", "operator", "force", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    operator: str
    force: bool
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., operator: _Optional[str] = ..., force: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class LeaveSafeModeResponse(_message.Message):
    __slots__ = ("safe_mode",)
    SAFE_MODE_FIELD_NUMBER: _ClassVar[int]
    safe_mode: SafeMode
    def __init__(self, safe_mode: _Optional[_Union[SafeMode, _Mapping]] = ...) -> None: ...
