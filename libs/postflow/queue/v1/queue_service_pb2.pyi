import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.queue.v1 import queue_pb2 as _queue_pb2
from postflow.queue.v1 import queue_slot_pb2 as _queue_slot_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from postflow.schedule.v1 import account_schedule_pb2 as _account_schedule_pb2
from postflow.target.v1 import target_pb2 as _target_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueuePlace(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUEUE_PLACE_UNSPECIFIED: _ClassVar[QueuePlace]
    QUEUE_PLACE_END: _ClassVar[QueuePlace]
    QUEUE_PLACE_FRONT: _ClassVar[QueuePlace]

class OverduePolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OVERDUE_POLICY_UNSPECIFIED: _ClassVar[OverduePolicy]
    OVERDUE_POLICY_RESCHEDULE: _ClassVar[OverduePolicy]
    OVERDUE_POLICY_PUBLISH_PACED: _ClassVar[OverduePolicy]
    OVERDUE_POLICY_CANCEL: _ClassVar[OverduePolicy]
QUEUE_PLACE_UNSPECIFIED: QueuePlace
QUEUE_PLACE_END: QueuePlace
QUEUE_PLACE_FRONT: QueuePlace
OVERDUE_POLICY_UNSPECIFIED: OverduePolicy
OVERDUE_POLICY_RESCHEDULE: OverduePolicy
OVERDUE_POLICY_PUBLISH_PACED: OverduePolicy
OVERDUE_POLICY_CANCEL: OverduePolicy

class AddToQueueRequest(_message.Message):
    __slots__ = ("organization_id", "draft_id", "social_account_ids", "request_id", "place")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_IDS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    social_account_ids: _containers.RepeatedScalarFieldContainer[str]
    request_id: str
    place: QueuePlace
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., social_account_ids: _Optional[_Iterable[str]] = ..., request_id: _Optional[str] = ..., place: _Optional[_Union[QueuePlace, str]] = ...) -> None: ...

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
    __slots__ = ("organization_id", "social_account_id", "draft_id", "states", "page_size", "page_token", "start_time", "end_time")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    draft_id: str
    states: _containers.RepeatedScalarFieldContainer[_queue_slot_pb2.QueueSlotState]
    page_size: int
    page_token: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlotState, str]]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListQueueSlotsResponse(_message.Message):
    __slots__ = ("queue_slots", "next_page_token")
    QUEUE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    next_page_token: str
    def __init__(self, queue_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class BatchAddToQueueRequest(_message.Message):
    __slots__ = ("organization_id", "items", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    items: _containers.RepeatedCompositeFieldContainer[QueueItem]
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[QueueItem, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class QueueItem(_message.Message):
    __slots__ = ("draft_id", "social_account_id", "schedule_time")
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    draft_id: str
    social_account_id: str
    schedule_time: _timestamp_pb2.Timestamp
    def __init__(self, draft_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class BatchAddToQueueResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[QueueItemResult]
    def __init__(self, results: _Optional[_Iterable[_Union[QueueItemResult, _Mapping]]] = ...) -> None: ...

class QueueItemResult(_message.Message):
    __slots__ = ("queue_slot", "error")
    QUEUE_SLOT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    queue_slot: _queue_slot_pb2.QueueSlot
    error: QueueItemError
    def __init__(self, queue_slot: _Optional[_Union[_queue_slot_pb2.QueueSlot, _Mapping]] = ..., error: _Optional[_Union[QueueItemError, _Mapping]] = ...) -> None: ...

class QueueItemError(_message.Message):
    __slots__ = ("code", "reason", "message", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    message: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ...) -> None: ...

class GetQueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: _queue_pb2.Queue
    def __init__(self, queue: _Optional[_Union[_queue_pb2.Queue, _Mapping]] = ...) -> None: ...

class UpdateQueueRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "late_policy", "pace", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    LATE_POLICY_FIELD_NUMBER: _ClassVar[int]
    PACE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    late_policy: _queue_pb2.LatePolicy
    pace: _duration_pb2.Duration
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., late_policy: _Optional[_Union[_queue_pb2.LatePolicy, _Mapping]] = ..., pace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateQueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: _queue_pb2.Queue
    def __init__(self, queue: _Optional[_Union[_queue_pb2.Queue, _Mapping]] = ...) -> None: ...

class ListDraftSlotsRequest(_message.Message):
    __slots__ = ("organization_id", "draft_ids", "live_only")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_IDS_FIELD_NUMBER: _ClassVar[int]
    LIVE_ONLY_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_ids: _containers.RepeatedScalarFieldContainer[str]
    live_only: bool
    def __init__(self, organization_id: _Optional[str] = ..., draft_ids: _Optional[_Iterable[str]] = ..., live_only: _Optional[bool] = ...) -> None: ...

class ListDraftSlotsResponse(_message.Message):
    __slots__ = ("drafts",)
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    drafts: _containers.RepeatedCompositeFieldContainer[DraftSlots]
    def __init__(self, drafts: _Optional[_Iterable[_Union[DraftSlots, _Mapping]]] = ...) -> None: ...

class DraftSlots(_message.Message):
    __slots__ = ("draft_id", "queue_slots")
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    draft_id: str
    queue_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    def __init__(self, draft_id: _Optional[str] = ..., queue_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ...) -> None: ...

class ReorderQueueRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "slot_ids", "draft_ids", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_IDS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_IDS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    slot_ids: _containers.RepeatedScalarFieldContainer[str]
    draft_ids: _containers.RepeatedScalarFieldContainer[str]
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., slot_ids: _Optional[_Iterable[str]] = ..., draft_ids: _Optional[_Iterable[str]] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReorderQueueResponse(_message.Message):
    __slots__ = ("moved_slots", "etag")
    MOVED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    moved_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    etag: str
    def __init__(self, moved_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ..., etag: _Optional[str] = ...) -> None: ...

class MoveSlotRequest(_message.Message):
    __slots__ = ("organization_id", "slot_id", "to_top", "to_bottom", "before_slot_id", "schedule_time", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    TO_TOP_FIELD_NUMBER: _ClassVar[int]
    TO_BOTTOM_FIELD_NUMBER: _ClassVar[int]
    BEFORE_SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    slot_id: str
    to_top: bool
    to_bottom: bool
    before_slot_id: str
    schedule_time: _timestamp_pb2.Timestamp
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., slot_id: _Optional[str] = ..., to_top: _Optional[bool] = ..., to_bottom: _Optional[bool] = ..., before_slot_id: _Optional[str] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class MoveSlotResponse(_message.Message):
    __slots__ = ("queue_slot", "moved_slots", "etag")
    QUEUE_SLOT_FIELD_NUMBER: _ClassVar[int]
    MOVED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    queue_slot: _queue_slot_pb2.QueueSlot
    moved_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    etag: str
    def __init__(self, queue_slot: _Optional[_Union[_queue_slot_pb2.QueueSlot, _Mapping]] = ..., moved_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ..., etag: _Optional[str] = ...) -> None: ...

class RemoveFromQueueRequest(_message.Message):
    __slots__ = ("organization_id", "slot_id", "close_gap", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    CLOSE_GAP_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    slot_id: str
    close_gap: bool
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., slot_id: _Optional[str] = ..., close_gap: _Optional[bool] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RemoveFromQueueResponse(_message.Message):
    __slots__ = ("queue_slot", "moved_slots", "etag")
    QUEUE_SLOT_FIELD_NUMBER: _ClassVar[int]
    MOVED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    queue_slot: _queue_slot_pb2.QueueSlot
    moved_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    etag: str
    def __init__(self, queue_slot: _Optional[_Union[_queue_slot_pb2.QueueSlot, _Mapping]] = ..., moved_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ..., etag: _Optional[str] = ...) -> None: ...

class ClearQueueRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ClearQueueResponse(_message.Message):
    __slots__ = ("canceled_slots", "too_late_slots", "etag")
    CANCELED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    TOO_LATE_SLOTS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    canceled_slots: int
    too_late_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    etag: str
    def __init__(self, canceled_slots: _Optional[int] = ..., too_late_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ..., etag: _Optional[str] = ...) -> None: ...

class SkipNextSlotRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "undo", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    undo: bool
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., undo: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class SkipNextSlotResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: _queue_pb2.Queue
    def __init__(self, queue: _Optional[_Union[_queue_pb2.Queue, _Mapping]] = ...) -> None: ...

class ShuffleQueueRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "seed", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    seed: int
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., seed: _Optional[int] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ShuffleQueueResponse(_message.Message):
    __slots__ = ("moved_slots", "etag", "seed")
    MOVED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    moved_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    etag: str
    seed: int
    def __init__(self, moved_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ..., etag: _Optional[str] = ..., seed: _Optional[int] = ...) -> None: ...

class PauseQueueRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "reason", "pauser", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PAUSER_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    reason: str
    pauser: str
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., reason: _Optional[str] = ..., pauser: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PauseQueueResponse(_message.Message):
    __slots__ = ("queue", "in_flight_post_job_ids")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_POST_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    queue: _queue_pb2.Queue
    in_flight_post_job_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, queue: _Optional[_Union[_queue_pb2.Queue, _Mapping]] = ..., in_flight_post_job_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ResumeQueueRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "overdue", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    overdue: OverduePolicy
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., overdue: _Optional[_Union[OverduePolicy, str]] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResumeQueueResponse(_message.Message):
    __slots__ = ("queue", "moved_slots", "canceled_slots")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MOVED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    CANCELED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    queue: _queue_pb2.Queue
    moved_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    canceled_slots: _containers.RepeatedCompositeFieldContainer[_queue_slot_pb2.QueueSlot]
    def __init__(self, queue: _Optional[_Union[_queue_pb2.Queue, _Mapping]] = ..., moved_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ..., canceled_slots: _Optional[_Iterable[_Union[_queue_slot_pb2.QueueSlot, _Mapping]]] = ...) -> None: ...

class PlanQueueRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "add", "schedule", "reorder", "clear", "shuffle", "pause", "resume", "remove", "move")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    REORDER_FIELD_NUMBER: _ClassVar[int]
    CLEAR_FIELD_NUMBER: _ClassVar[int]
    SHUFFLE_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    add: PlannedAdditions
    schedule: PlannedSchedule
    reorder: PlannedOrder
    clear: bool
    shuffle: PlannedShuffle
    pause: PlannedPause
    resume: OverduePolicy
    remove: PlannedRemoval
    move: PlannedMove
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., add: _Optional[_Union[PlannedAdditions, _Mapping]] = ..., schedule: _Optional[_Union[PlannedSchedule, _Mapping]] = ..., reorder: _Optional[_Union[PlannedOrder, _Mapping]] = ..., clear: _Optional[bool] = ..., shuffle: _Optional[_Union[PlannedShuffle, _Mapping]] = ..., pause: _Optional[_Union[PlannedPause, _Mapping]] = ..., resume: _Optional[_Union[OverduePolicy, str]] = ..., remove: _Optional[_Union[PlannedRemoval, _Mapping]] = ..., move: _Optional[_Union[PlannedMove, _Mapping]] = ...) -> None: ...

class PlannedAdditions(_message.Message):
    __slots__ = ("count", "place", "category_id")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_ID_FIELD_NUMBER: _ClassVar[int]
    count: int
    place: QueuePlace
    category_id: str
    def __init__(self, count: _Optional[int] = ..., place: _Optional[_Union[QueuePlace, str]] = ..., category_id: _Optional[str] = ...) -> None: ...

class PlannedSchedule(_message.Message):
    __slots__ = ("weekly_slots", "time_zone", "max_posts_per_day")
    WEEKLY_SLOTS_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    MAX_POSTS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    weekly_slots: _containers.RepeatedCompositeFieldContainer[_account_schedule_pb2.WeeklySlot]
    time_zone: str
    max_posts_per_day: int
    def __init__(self, weekly_slots: _Optional[_Iterable[_Union[_account_schedule_pb2.WeeklySlot, _Mapping]]] = ..., time_zone: _Optional[str] = ..., max_posts_per_day: _Optional[int] = ...) -> None: ...

class PlannedOrder(_message.Message):
    __slots__ = ("slot_ids", "draft_ids")
    SLOT_IDS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_IDS_FIELD_NUMBER: _ClassVar[int]
    slot_ids: _containers.RepeatedScalarFieldContainer[str]
    draft_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, slot_ids: _Optional[_Iterable[str]] = ..., draft_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class PlannedShuffle(_message.Message):
    __slots__ = ("seed",)
    SEED_FIELD_NUMBER: _ClassVar[int]
    seed: int
    def __init__(self, seed: _Optional[int] = ...) -> None: ...

class PlannedPause(_message.Message):
    __slots__ = ("until", "overdue")
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_FIELD_NUMBER: _ClassVar[int]
    until: _timestamp_pb2.Timestamp
    overdue: OverduePolicy
    def __init__(self, until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., overdue: _Optional[_Union[OverduePolicy, str]] = ...) -> None: ...

class PlannedRemoval(_message.Message):
    __slots__ = ("slot_id", "close_gap")
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    CLOSE_GAP_FIELD_NUMBER: _ClassVar[int]
    slot_id: str
    close_gap: bool
    def __init__(self, slot_id: _Optional[str] = ..., close_gap: _Optional[bool] = ...) -> None: ...

class PlannedMove(_message.Message):
    __slots__ = ("slot_id", "to_top", "to_bottom", "before_slot_id", "schedule_time")
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    TO_TOP_FIELD_NUMBER: _ClassVar[int]
    TO_BOTTOM_FIELD_NUMBER: _ClassVar[int]
    BEFORE_SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    slot_id: str
    to_top: bool
    to_bottom: bool
    before_slot_id: str
    schedule_time: _timestamp_pb2.Timestamp
    def __init__(self, slot_id: _Optional[str] = ..., to_top: _Optional[bool] = ..., to_bottom: _Optional[bool] = ..., before_slot_id: _Optional[str] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PlanQueueResponse(_message.Message):
    __slots__ = ("slots", "unchanged_slots", "etag", "plan_time")
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    PLAN_TIME_FIELD_NUMBER: _ClassVar[int]
    slots: _containers.RepeatedCompositeFieldContainer[PlannedSlot]
    unchanged_slots: int
    etag: str
    plan_time: _timestamp_pb2.Timestamp
    def __init__(self, slots: _Optional[_Iterable[_Union[PlannedSlot, _Mapping]]] = ..., unchanged_slots: _Optional[int] = ..., etag: _Optional[str] = ..., plan_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PlannedSlot(_message.Message):
    __slots__ = ("slot_id", "draft_id", "previous_time", "schedule_time", "local_time")
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_TIME_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    slot_id: str
    draft_id: str
    previous_time: _timestamp_pb2.Timestamp
    schedule_time: _timestamp_pb2.Timestamp
    local_time: str
    def __init__(self, slot_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., previous_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., local_time: _Optional[str] = ...) -> None: ...

class ExplainSlotRequest(_message.Message):
    __slots__ = ("organization_id", "slot_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    slot_id: str
    def __init__(self, organization_id: _Optional[str] = ..., slot_id: _Optional[str] = ...) -> None: ...

class ExplainSlotResponse(_message.Message):
    __slots__ = ("queue_slot", "time_reason", "passed_times", "obstacles", "summary")
    QUEUE_SLOT_FIELD_NUMBER: _ClassVar[int]
    TIME_REASON_FIELD_NUMBER: _ClassVar[int]
    PASSED_TIMES_FIELD_NUMBER: _ClassVar[int]
    OBSTACLES_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    queue_slot: _queue_slot_pb2.QueueSlot
    time_reason: str
    passed_times: _containers.RepeatedCompositeFieldContainer[PassedTime]
    obstacles: _containers.RepeatedCompositeFieldContainer[SlotObstacle]
    summary: str
    def __init__(self, queue_slot: _Optional[_Union[_queue_slot_pb2.QueueSlot, _Mapping]] = ..., time_reason: _Optional[str] = ..., passed_times: _Optional[_Iterable[_Union[PassedTime, _Mapping]]] = ..., obstacles: _Optional[_Iterable[_Union[SlotObstacle, _Mapping]]] = ..., summary: _Optional[str] = ...) -> None: ...

class PassedTime(_message.Message):
    __slots__ = ("time", "reason", "slot_id", "draft_id")
    TIME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    reason: str
    slot_id: str
    draft_id: str
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., slot_id: _Optional[str] = ..., draft_id: _Optional[str] = ...) -> None: ...

class SlotObstacle(_message.Message):
    __slots__ = ("reason", "message", "clear_time", "target")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CLEAR_TIME_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    clear_time: _timestamp_pb2.Timestamp
    target: _target_pb2.Target
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ..., clear_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ...) -> None: ...

class WatchQueueRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "resume_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    resume_token: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., resume_token: _Optional[str] = ...) -> None: ...

class WatchQueueResponse(_message.Message):
    __slots__ = ("queue_slot", "queue", "is_caught_up", "resume_token")
    QUEUE_SLOT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    IS_CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue_slot: _queue_slot_pb2.QueueSlot
    queue: _queue_pb2.Queue
    is_caught_up: bool
    resume_token: str
    def __init__(self, queue_slot: _Optional[_Union[_queue_slot_pb2.QueueSlot, _Mapping]] = ..., queue: _Optional[_Union[_queue_pb2.Queue, _Mapping]] = ..., is_caught_up: _Optional[bool] = ..., resume_token: _Optional[str] = ...) -> None: ...
