import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ConsumerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONSUMER_STATE_UNSPECIFIED: _ClassVar[ConsumerState]
    CONSUMER_STATE_RUNNING: _ClassVar[ConsumerState]
    CONSUMER_STATE_FAILING: _ClassVar[ConsumerState]

class DeadLetterState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEAD_LETTER_STATE_UNSPECIFIED: _ClassVar[DeadLetterState]
    DEAD_LETTER_STATE_OPEN: _ClassVar[DeadLetterState]
    DEAD_LETTER_STATE_REDRIVEN: _ClassVar[DeadLetterState]
    DEAD_LETTER_STATE_ARCHIVED: _ClassVar[DeadLetterState]
CONSUMER_STATE_UNSPECIFIED: ConsumerState
CONSUMER_STATE_RUNNING: ConsumerState
CONSUMER_STATE_FAILING: ConsumerState
DEAD_LETTER_STATE_UNSPECIFIED: DeadLetterState
DEAD_LETTER_STATE_OPEN: DeadLetterState
DEAD_LETTER_STATE_REDRIVEN: DeadLetterState
DEAD_LETTER_STATE_ARCHIVED: DeadLetterState

class GetStatsRequest(_message.Message):
    __slots__ = ("organization_id",)
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    def __init__(self, organization_id: _Optional[str] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("service", "version", "instance", "start_time", "schema_revision", "needed_schema_revision", "consumers", "outbox", "numbers")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_REVISION_FIELD_NUMBER: _ClassVar[int]
    NEEDED_SCHEMA_REVISION_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    OUTBOX_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    service: str
    version: str
    instance: str
    start_time: _timestamp_pb2.Timestamp
    schema_revision: str
    needed_schema_revision: str
    consumers: _containers.RepeatedCompositeFieldContainer[ConsumerStats]
    outbox: OutboxStats
    numbers: _containers.RepeatedCompositeFieldContainer[Number]
    def __init__(self, service: _Optional[str] = ..., version: _Optional[str] = ..., instance: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., schema_revision: _Optional[str] = ..., needed_schema_revision: _Optional[str] = ..., consumers: _Optional[_Iterable[_Union[ConsumerStats, _Mapping]]] = ..., outbox: _Optional[_Union[OutboxStats, _Mapping]] = ..., numbers: _Optional[_Iterable[_Union[Number, _Mapping]]] = ...) -> None: ...

class ConsumerStats(_message.Message):
    __slots__ = ("consumer", "state", "failing_types", "open_dead_letters")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FAILING_TYPES_FIELD_NUMBER: _ClassVar[int]
    OPEN_DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    state: ConsumerState
    failing_types: _containers.RepeatedScalarFieldContainer[str]
    open_dead_letters: int
    def __init__(self, consumer: _Optional[str] = ..., state: _Optional[_Union[ConsumerState, str]] = ..., failing_types: _Optional[_Iterable[str]] = ..., open_dead_letters: _Optional[int] = ...) -> None: ...

class OutboxStats(_message.Message):
    __slots__ = ("backlog", "oldest_age")
    BACKLOG_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_FIELD_NUMBER: _ClassVar[int]
    backlog: int
    oldest_age: _duration_pb2.Duration
    def __init__(self, backlog: _Optional[int] = ..., oldest_age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Number(_message.Message):
    __slots__ = ("name", "value", "unit")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    unit: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., unit: _Optional[str] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("id", "organization_id", "consumer", "subject", "reason", "state", "create_time", "redrives", "redrive_time", "end_time", "payload_size", "payload")
    ID_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    REDRIVES_FIELD_NUMBER: _ClassVar[int]
    REDRIVE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    id: str
    organization_id: str
    consumer: str
    subject: str
    reason: str
    state: DeadLetterState
    create_time: _timestamp_pb2.Timestamp
    redrives: int
    redrive_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    payload_size: int
    payload: bytes
    def __init__(self, id: _Optional[str] = ..., organization_id: _Optional[str] = ..., consumer: _Optional[str] = ..., subject: _Optional[str] = ..., reason: _Optional[str] = ..., state: _Optional[_Union[DeadLetterState, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., redrives: _Optional[int] = ..., redrive_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., payload_size: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class ListDeadLettersRequest(_message.Message):
    __slots__ = ("organization_id", "consumer", "states", "include_payload", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    consumer: str
    states: _containers.RepeatedScalarFieldContainer[DeadLetterState]
    include_payload: bool
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., consumer: _Optional[str] = ..., states: _Optional[_Iterable[_Union[DeadLetterState, str]]] = ..., include_payload: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDeadLettersResponse(_message.Message):
    __slots__ = ("dead_letters", "next_page_token")
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    dead_letters: _containers.RepeatedCompositeFieldContainer[DeadLetter]
    next_page_token: str
    def __init__(self, dead_letters: _Optional[_Iterable[_Union[DeadLetter, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RedriveDeadLettersRequest(_message.Message):
    __slots__ = ("organization_id", "dead_letter_ids", "consumer", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_IDS_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    dead_letter_ids: _containers.RepeatedScalarFieldContainer[str]
    consumer: str
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., dead_letter_ids: _Optional[_Iterable[str]] = ..., consumer: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class RedriveDeadLettersResponse(_message.Message):
    __slots__ = ("results", "next_page_token")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[RedriveResult]
    next_page_token: str
    def __init__(self, results: _Optional[_Iterable[_Union[RedriveResult, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RedriveResult(_message.Message):
    __slots__ = ("dead_letter_id", "redriven", "reason")
    DEAD_LETTER_ID_FIELD_NUMBER: _ClassVar[int]
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    dead_letter_id: str
    redriven: bool
    reason: str
    def __init__(self, dead_letter_id: _Optional[str] = ..., redriven: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class ArchiveDeadLettersRequest(_message.Message):
    __slots__ = ("organization_id", "dead_letter_ids")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_IDS_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    dead_letter_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, organization_id: _Optional[str] = ..., dead_letter_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ArchiveDeadLettersResponse(_message.Message):
    __slots__ = ("dead_letter_ids",)
    DEAD_LETTER_IDS_FIELD_NUMBER: _ClassVar[int]
    dead_letter_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, dead_letter_ids: _Optional[_Iterable[str]] = ...) -> None: ...
