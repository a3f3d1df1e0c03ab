import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.queue.v1 import queue_slot_pb2 as _queue_slot_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AddToQueueRequest(_message.Message):
    __slots__ = ("organization_id", "draft_id", "social_account_ids", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_IDS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    social_account_ids: _containers.RepeatedScalarFieldContainer[str]
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., social_account_ids: _Optional[_Iterable[str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class AddToQueueResponse(_message.Message):
    __slots__ = ("queue_slots",)
    QUEUE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    queue_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    def __init__(self, queue_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ...) -> None: ...

class ScheduleAtRequest(_message.Message):
    __slots__ = ("organization_id", "draft_id", "schedule_time", "social_account_ids", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_IDS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    schedule_time: _timestamp_pb2.Timestamp
    social_account_ids: _containers.RepeatedScalarFieldContainer[str]
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., social_account_ids: _Optional[_Iterable[str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ScheduleAtResponse(_message.Message):
    __slots__ = ("queue_slots",)
    QUEUE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    queue_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    def __init__(self, queue_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ...) -> None: ...

class ListQueueSlotsRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "draft_id", "states", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    draft_id: str
    states: _containers.RepeatedScalarFieldContainer[_queue_slot_pb2.QueueSlotState]
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlotState, str]]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListQueueSlotsResponse(_message.Message):
    __slots__ = ("queue_slots", "next_page_token")
    QUEUE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    next_page_token: str
    def __init__(self, queue_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
