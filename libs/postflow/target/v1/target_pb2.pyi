from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Target(_message.Message):
    __slots__ = ("social_account_id", "channel", "destination")
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    social_account_id: str
    channel: str
    destination: str
    def __init__(self, social_account_id: _Optional[str] = ..., channel: _Optional[str] = ..., destination: _Optional[str] = ...) -> None: ...
