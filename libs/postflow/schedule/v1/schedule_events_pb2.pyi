from postflow.schedule.v1 import account_schedule_pb2 as _account_schedule_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AccountScheduleChanged(_message.Message):
    __slots__ = ("organization_id", "account_schedule")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    account_schedule: _account_schedule_pb2.AccountSchedule
    def __init__(self, organization_id: _Optional[str] = ..., account_schedule: _Optional[_Union[_account_schedule_pb2.AccountSchedule, _Mapping]] = ...) -> None: ...
