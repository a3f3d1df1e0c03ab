import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.target.v1 import target_pb2 as _target_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PublishCommand(_message.Message):
    __slots__ = ("organization_id", "slot_id", "slot_revision", "emission", "draft_id", "target", "schedule_time", "not_after", "content_revision", "max_attempts", "traceparent", "slot_sequence", "time_zone", "known_job_version", "known_job_state")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_REVISION_FIELD_NUMBER: _ClassVar[int]
    EMISSION_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_REVISION_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    SLOT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    KNOWN_JOB_VERSION_FIELD_NUMBER: _ClassVar[int]
    KNOWN_JOB_STATE_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    slot_id: str
    slot_revision: int
    emission: int
    draft_id: str
    target: _target_pb2.Target
    schedule_time: _timestamp_pb2.Timestamp
    not_after: _timestamp_pb2.Timestamp
    content_revision: int
    max_attempts: int
    traceparent: str
    slot_sequence: int
    time_zone: str
    known_job_version: int
    known_job_state: str
    def __init__(self, organization_id: _Optional[str] = ..., slot_id: _Optional[str] = ..., slot_revision: _Optional[int] = ..., emission: _Optional[int] = ..., draft_id: _Optional[str] = ..., target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., content_revision: _Optional[int] = ..., max_attempts: _Optional[int] = ..., traceparent: _Optional[str] = ..., slot_sequence: _Optional[int] = ..., time_zone: _Optional[str] = ..., known_job_version: _Optional[int] = ..., known_job_state: _Optional[str] = ...) -> None: ...
