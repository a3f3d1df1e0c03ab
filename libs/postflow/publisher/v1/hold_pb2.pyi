import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HoldScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOLD_SCOPE_UNSPECIFIED: _ClassVar[HoldScope]
    HOLD_SCOPE_ACCOUNT: _ClassVar[HoldScope]
    HOLD_SCOPE_ORGANIZATION: _ClassVar[HoldScope]
    HOLD_SCOPE_BRAND: _ClassVar[HoldScope]
    HOLD_SCOPE_CAMPAIGN: _ClassVar[HoldScope]
    HOLD_SCOPE_PROVIDER: _ClassVar[HoldScope]
HOLD_SCOPE_UNSPECIFIED: HoldScope
HOLD_SCOPE_ACCOUNT: HoldScope
HOLD_SCOPE_ORGANIZATION: HoldScope
HOLD_SCOPE_BRAND: HoldScope
HOLD_SCOPE_CAMPAIGN: HoldScope
HOLD_SCOPE_PROVIDER: HoldScope

class Hold(_message.Message):
    __slots__ = ("id", "scope", "scope_id", "revision", "reason", "holder", "in_force", "create_time", "update_time", "end_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    IN_FORCE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    scope: HoldScope
    scope_id: str
    revision: int
    reason: str
    holder: str
    in_force: bool
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., scope: _Optional[_Union[HoldScope, str]] = ..., scope_id: _Optional[str] = ..., revision: _Optional[int] = ..., reason: _Optional[str] = ..., holder: _Optional[str] = ..., in_force: _Optional[bool] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
