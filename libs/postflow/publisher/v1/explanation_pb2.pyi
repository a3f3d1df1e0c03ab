import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CheckState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHECK_STATE_UNSPECIFIED: _ClassVar[CheckState]
    CHECK_STATE_PASSED: _ClassVar[CheckState]
    CHECK_STATE_OPEN: _ClassVar[CheckState]
    CHECK_STATE_NOT_APPLICABLE: _ClassVar[CheckState]
CHECK_STATE_UNSPECIFIED: CheckState
CHECK_STATE_PASSED: CheckState
CHECK_STATE_OPEN: CheckState
CHECK_STATE_NOT_APPLICABLE: CheckState

class PostJobCheck(_message.Message):
    __slots__ = ("name", "state", "verdict", "values", "clear_time", "sentence")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    CLEAR_TIME_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: CheckState
    verdict: str
    values: _containers.ScalarMap[str, str]
    clear_time: _timestamp_pb2.Timestamp
    sentence: str
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[CheckState, str]] = ..., verdict: _Optional[str] = ..., values: _Optional[_Mapping[str, str]] = ..., clear_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., sentence: _Optional[str] = ...) -> None: ...
