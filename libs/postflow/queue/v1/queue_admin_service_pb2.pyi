from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class RedispatchSlotsRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "slot_ids", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_IDS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    slot_ids: _containers.RepeatedScalarFieldContainer[str]
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., slot_ids: _Optional[_Iterable[str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class RedispatchSlotsResponse(_message.Message):
    __slots__ = ("repeated_slots", "accounts")
    REPEATED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    repeated_slots: int
    accounts: int
    def __init__(self, repeated_slots: _Optional[int] = ..., accounts: _Optional[int] = ...) -> None: ...
