from postflow.rules.v1 import rules_pb2 as _rules_pb2
from postflow.schedule.v1 import timer_pb2 as _timer_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateTimerRequest(_message.Message):
    __slots__ = ("organization_id", "timer", "timer_id", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    timer: _timer_pb2.Timer
    timer_id: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., timer: _Optional[_Union[_timer_pb2.Timer, _Mapping]] = ..., timer_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateTimerResponse(_message.Message):
    __slots__ = ("timer",)
    TIMER_FIELD_NUMBER: _ClassVar[int]
    timer: _timer_pb2.Timer
    def __init__(self, timer: _Optional[_Union[_timer_pb2.Timer, _Mapping]] = ...) -> None: ...

class GetTimerRequest(_message.Message):
    __slots__ = ("organization_id", "timer_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    timer_id: str
    def __init__(self, organization_id: _Optional[str] = ..., timer_id: _Optional[str] = ...) -> None: ...

class GetTimerResponse(_message.Message):
    __slots__ = ("timer",)
    TIMER_FIELD_NUMBER: _ClassVar[int]
    timer: _timer_pb2.Timer
    def __init__(self, timer: _Optional[_Union[_timer_pb2.Timer, _Mapping]] = ...) -> None: ...

class ListTimersRequest(_message.Message):
    __slots__ = ("organization_id", "topic", "state", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    topic: str
    state: _timer_pb2.TimerState
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., topic: _Optional[str] = ..., state: _Optional[_Union[_timer_pb2.TimerState, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTimersResponse(_message.Message):
    __slots__ = ("timers", "next_page_token")
    TIMERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    timers: _containers.RepeatedCompositeFieldContainer[_timer_pb2.Timer]
    next_page_token: str
    def __init__(self, timers: _Optional[_Iterable[_Union[_timer_pb2.Timer, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PauseTimerRequest(_message.Message):
    __slots__ = ("organization_id", "timer_id", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    timer_id: str
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PauseTimerResponse(_message.Message):
    __slots__ = ("timer",)
    TIMER_FIELD_NUMBER: _ClassVar[int]
    timer: _timer_pb2.Timer
    def __init__(self, timer: _Optional[_Union[_timer_pb2.Timer, _Mapping]] = ...) -> None: ...

class ResumeTimerRequest(_message.Message):
    __slots__ = ("organization_id", "timer_id", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    timer_id: str
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResumeTimerResponse(_message.Message):
    __slots__ = ("timer",)
    TIMER_FIELD_NUMBER: _ClassVar[int]
    timer: _timer_pb2.Timer
    def __init__(self, timer: _Optional[_Union[_timer_pb2.Timer, _Mapping]] = ...) -> None: ...

class FireTimerRequest(_message.Message):
    __slots__ = ("organization_id", "timer_id", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    timer_id: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class FireTimerResponse(_message.Message):
    __slots__ = ("timer", "occurrence_key")
    TIMER_FIELD_NUMBER: _ClassVar[int]
    OCCURRENCE_KEY_FIELD_NUMBER: _ClassVar[int]
    timer: _timer_pb2.Timer
    occurrence_key: str
    def __init__(self, timer: _Optional[_Union[_timer_pb2.Timer, _Mapping]] = ..., occurrence_key: _Optional[str] = ...) -> None: ...

class DeleteTimerRequest(_message.Message):
    __slots__ = ("organization_id", "timer_id", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    timer_id: str
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteTimerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
