import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.target.v1 import target_pb2 as _target_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTION_UNSPECIFIED: _ClassVar[Action]
    ACTION_POST: _ClassVar[Action]
    ACTION_EMAIL: _ClassVar[Action]
    ACTION_MESSAGE: _ClassVar[Action]
    ACTION_CONNECTION_REQUEST: _ClassVar[Action]
    ACTION_INMAIL: _ClassVar[Action]

class PostJobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POST_JOB_STATE_UNSPECIFIED: _ClassVar[PostJobState]
    POST_JOB_STATE_PENDING: _ClassVar[PostJobState]
    POST_JOB_STATE_SCHEDULED: _ClassVar[PostJobState]
    POST_JOB_STATE_READY: _ClassVar[PostJobState]
    POST_JOB_STATE_SENDING: _ClassVar[PostJobState]
    POST_JOB_STATE_WAITING: _ClassVar[PostJobState]
    POST_JOB_STATE_BLOCKED: _ClassVar[PostJobState]
    POST_JOB_STATE_UNKNOWN: _ClassVar[PostJobState]
    POST_JOB_STATE_PUBLISHED: _ClassVar[PostJobState]
    POST_JOB_STATE_FAILED: _ClassVar[PostJobState]
    POST_JOB_STATE_MISSED: _ClassVar[PostJobState]
    POST_JOB_STATE_CANCELED: _ClassVar[PostJobState]
    POST_JOB_STATE_NEEDS_ATTENTION: _ClassVar[PostJobState]
ACTION_UNSPECIFIED: Action
ACTION_POST: Action
ACTION_EMAIL: Action
ACTION_MESSAGE: Action
ACTION_CONNECTION_REQUEST: Action
ACTION_INMAIL: Action
POST_JOB_STATE_UNSPECIFIED: PostJobState
POST_JOB_STATE_PENDING: PostJobState
POST_JOB_STATE_SCHEDULED: PostJobState
POST_JOB_STATE_READY: PostJobState
POST_JOB_STATE_SENDING: PostJobState
POST_JOB_STATE_WAITING: PostJobState
POST_JOB_STATE_BLOCKED: PostJobState
POST_JOB_STATE_UNKNOWN: PostJobState
POST_JOB_STATE_PUBLISHED: PostJobState
POST_JOB_STATE_FAILED: PostJobState
POST_JOB_STATE_MISSED: PostJobState
POST_JOB_STATE_CANCELED: PostJobState
POST_JOB_STATE_NEEDS_ATTENTION: PostJobState

class PostJob(_message.Message):
    __slots__ = ("id", "draft_id", "target", "state", "state_reason", "version", "run", "slot_id", "slot_revision", "schedule_time", "not_after", "next_action_time", "attempts", "content_revision", "publish_time", "external_id", "external_url", "evidence_kind", "error_reason", "error_message", "last_attempt_time", "target_month", "create_time", "update_time", "in_doubt", "unknown_until", "expected_time", "action", "publish_now", "brand_id", "campaign_id", "slot_sequence", "part", "parts", "follows")
    ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_REVISION_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    NEXT_ACTION_TIME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_REVISION_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_TIME_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_URL_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_KIND_FIELD_NUMBER: _ClassVar[int]
    ERROR_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LAST_ATTEMPT_TIME_FIELD_NUMBER: _ClassVar[int]
    TARGET_MONTH_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    IN_DOUBT_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_UNTIL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_TIME_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_NOW_FIELD_NUMBER: _ClassVar[int]
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    FOLLOWS_FIELD_NUMBER: _ClassVar[int]
    id: str
    draft_id: str
    target: _target_pb2.Target
    state: PostJobState
    state_reason: str
    version: int
    run: int
    slot_id: str
    slot_revision: int
    schedule_time: _timestamp_pb2.Timestamp
    not_after: _timestamp_pb2.Timestamp
    next_action_time: _timestamp_pb2.Timestamp
    attempts: int
    content_revision: int
    publish_time: _timestamp_pb2.Timestamp
    external_id: str
    external_url: str
    evidence_kind: str
    error_reason: str
    error_message: str
    last_attempt_time: _timestamp_pb2.Timestamp
    target_month: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    in_doubt: bool
    unknown_until: _timestamp_pb2.Timestamp
    expected_time: _timestamp_pb2.Timestamp
    action: Action
    publish_now: bool
    brand_id: str
    campaign_id: str
    slot_sequence: int
    part: int
    parts: int
    follows: str
    def __init__(self, id: _Optional[str] = ..., draft_id: _Optional[str] = ..., target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., state: _Optional[_Union[PostJobState, str]] = ..., state_reason: _Optional[str] = ..., version: _Optional[int] = ..., run: _Optional[int] = ..., slot_id: _Optional[str] = ..., slot_revision: _Optional[int] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_action_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempts: _Optional[int] = ..., content_revision: _Optional[int] = ..., publish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., external_id: _Optional[str] = ..., external_url: _Optional[str] = ..., evidence_kind: _Optional[str] = ..., error_reason: _Optional[str] = ..., error_message: _Optional[str] = ..., last_attempt_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., target_month: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., in_doubt: _Optional[bool] = ..., unknown_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expected_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., action: _Optional[_Union[Action, str]] = ..., publish_now: _Optional[bool] = ..., brand_id: _Optional[str] = ..., campaign_id: _Optional[str] = ..., slot_sequence: _Optional[int] = ..., part: _Optional[int] = ..., parts: _Optional[int] = ..., follows: _Optional[str] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("run", "number", "state", "idempotency_key", "content_revision", "start_time", "end_time", "external_id", "error_reason", "error_message")
    RUN_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_REVISION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    run: int
    number: int
    state: str
    idempotency_key: str
    content_revision: int
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    external_id: str
    error_reason: str
    error_message: str
    def __init__(self, run: _Optional[int] = ..., number: _Optional[int] = ..., state: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., content_revision: _Optional[int] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., external_id: _Optional[str] = ..., error_reason: _Optional[str] = ..., error_message: _Optional[str] = ...) -> None: ...
