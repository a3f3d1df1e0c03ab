import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.target.v1 import target_pb2 as _target_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DestinationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DESTINATION_STATE_UNSPECIFIED: _ClassVar[DestinationState]
    DESTINATION_STATE_ACTIVE: _ClassVar[DestinationState]
    DESTINATION_STATE_INACTIVE: _ClassVar[DestinationState]
DESTINATION_STATE_UNSPECIFIED: DestinationState
DESTINATION_STATE_ACTIVE: DestinationState
DESTINATION_STATE_INACTIVE: DestinationState

class Destination(_message.Message):
    __slots__ = ("target", "state", "state_reason", "failures", "error_message", "last_success_time", "last_failure_time", "deactivate_time", "etag")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LAST_SUCCESS_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_FAILURE_TIME_FIELD_NUMBER: _ClassVar[int]
    DEACTIVATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    target: _target_pb2.Target
    state: DestinationState
    state_reason: str
    failures: int
    error_message: str
    last_success_time: _timestamp_pb2.Timestamp
    last_failure_time: _timestamp_pb2.Timestamp
    deactivate_time: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., state: _Optional[_Union[DestinationState, str]] = ..., state_reason: _Optional[str] = ..., failures: _Optional[int] = ..., error_message: _Optional[str] = ..., last_success_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_failure_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deactivate_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...
