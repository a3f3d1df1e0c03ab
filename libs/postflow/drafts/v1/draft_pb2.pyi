import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from postflow.target.v1 import target_pb2 as _target_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MediaKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEDIA_KIND_UNSPECIFIED: _ClassVar[MediaKind]
    MEDIA_KIND_IMAGE: _ClassVar[MediaKind]
    MEDIA_KIND_VIDEO: _ClassVar[MediaKind]
    MEDIA_KIND_DOCUMENT: _ClassVar[MediaKind]

class DraftState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DRAFT_STATE_UNSPECIFIED: _ClassVar[DraftState]
    DRAFT_STATE_DRAFT: _ClassVar[DraftState]
    DRAFT_STATE_SCHEDULED: _ClassVar[DraftState]
    DRAFT_STATE_PUBLISHING: _ClassVar[DraftState]
    DRAFT_STATE_PUBLISHED: _ClassVar[DraftState]
    DRAFT_STATE_PARTIALLY_PUBLISHED: _ClassVar[DraftState]
    DRAFT_STATE_FAILED: _ClassVar[DraftState]
    DRAFT_STATE_NEEDS_ATTENTION: _ClassVar[DraftState]
    DRAFT_STATE_BLOCKED: _ClassVar[DraftState]
MEDIA_KIND_UNSPECIFIED: MediaKind
MEDIA_KIND_IMAGE: MediaKind
MEDIA_KIND_VIDEO: MediaKind
MEDIA_KIND_DOCUMENT: MediaKind
DRAFT_STATE_UNSPECIFIED: DraftState
DRAFT_STATE_DRAFT: DraftState
DRAFT_STATE_SCHEDULED: DraftState
DRAFT_STATE_PUBLISHING: DraftState
DRAFT_STATE_PUBLISHED: DraftState
DRAFT_STATE_PARTIALLY_PUBLISHED: DraftState
DRAFT_STATE_FAILED: DraftState
DRAFT_STATE_NEEDS_ATTENTION: DraftState
DRAFT_STATE_BLOCKED: DraftState

class Draft(_message.Message):
    __slots__ = ("id", "content", "targets", "revision", "content_digest", "approved", "approve_time", "approver", "state", "target_states", "schedule_time", "publish_time", "etag", "create_time", "update_time", "requested_time", "category_id", "slot_refusals", "brand_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    APPROVE_TIME_FIELD_NUMBER: _ClassVar[int]
    APPROVER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TARGET_STATES_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_TIME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_TIME_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_REFUSALS_FIELD_NUMBER: _ClassVar[int]
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    content: DraftContent
    targets: _containers.RepeatedCompositeFieldContainer[_target_pb2.Target]
    revision: int
    content_digest: str
    approved: bool
    approve_time: _timestamp_pb2.Timestamp
    approver: str
    state: DraftState
    target_states: _containers.RepeatedCompositeFieldContainer[TargetState]
    schedule_time: _timestamp_pb2.Timestamp
    publish_time: _timestamp_pb2.Timestamp
    etag: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    requested_time: _timestamp_pb2.Timestamp
    category_id: str
    slot_refusals: _containers.RepeatedCompositeFieldContainer[SlotRefusal]
    brand_id: str
    def __init__(self, id: _Optional[str] = ..., content: _Optional[_Union[DraftContent, _Mapping]] = ..., targets: _Optional[_Iterable[_Union[_target_pb2.Target, _Mapping]]] = ..., revision: _Optional[int] = ..., content_digest: _Optional[str] = ..., approved: _Optional[bool] = ..., approve_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., approver: _Optional[str] = ..., state: _Optional[_Union[DraftState, str]] = ..., target_states: _Optional[_Iterable[_Union[TargetState, _Mapping]]] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., publish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., requested_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., category_id: _Optional[str] = ..., slot_refusals: _Optional[_Iterable[_Union[SlotRefusal, _Mapping]]] = ..., brand_id: _Optional[str] = ...) -> None: ...

class SlotRefusal(_message.Message):
    __slots__ = ("social_account_id", "schedule_time", "reason", "message", "create_time")
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    social_account_id: str
    schedule_time: _timestamp_pb2.Timestamp
    reason: str
    message: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, social_account_id: _Optional[str] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class DraftContent(_message.Message):
    __slots__ = ("text", "hashtags", "channel_texts", "title", "link", "media", "follow_ups", "channel_media")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HASHTAGS_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_TEXTS_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    MEDIA_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_UPS_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_MEDIA_FIELD_NUMBER: _ClassVar[int]
    text: str
    hashtags: _containers.RepeatedScalarFieldContainer[str]
    channel_texts: _containers.RepeatedCompositeFieldContainer[ChannelText]
    title: str
    link: str
    media: _containers.RepeatedCompositeFieldContainer[Media]
    follow_ups: _containers.RepeatedCompositeFieldContainer[FollowUp]
    channel_media: _containers.RepeatedCompositeFieldContainer[ChannelMedia]
    def __init__(self, text: _Optional[str] = ..., hashtags: _Optional[_Iterable[str]] = ..., channel_texts: _Optional[_Iterable[_Union[ChannelText, _Mapping]]] = ..., title: _Optional[str] = ..., link: _Optional[str] = ..., media: _Optional[_Iterable[_Union[Media, _Mapping]]] = ..., follow_ups: _Optional[_Iterable[_Union[FollowUp, _Mapping]]] = ..., channel_media: _Optional[_Iterable[_Union[ChannelMedia, _Mapping]]] = ...) -> None: ...

class ChannelMedia(_message.Message):
    __slots__ = ("channel", "media")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    MEDIA_FIELD_NUMBER: _ClassVar[int]
    channel: str
    media: _containers.RepeatedCompositeFieldContainer[Media]
    def __init__(self, channel: _Optional[str] = ..., media: _Optional[_Iterable[_Union[Media, _Mapping]]] = ...) -> None: ...

class Media(_message.Message):
    __slots__ = ("url", "alt_text", "facts")
    URL_FIELD_NUMBER: _ClassVar[int]
    ALT_TEXT_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    url: str
    alt_text: str
    facts: MediaFacts
    def __init__(self, url: _Optional[str] = ..., alt_text: _Optional[str] = ..., facts: _Optional[_Union[MediaFacts, _Mapping]] = ...) -> None: ...

class MediaFacts(_message.Message):
    __slots__ = ("sha256", "kind", "content_type", "size", "width", "height", "duration")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    sha256: str
    kind: MediaKind
    content_type: str
    size: int
    width: int
    height: int
    duration: _duration_pb2.Duration
    def __init__(self, sha256: _Optional[str] = ..., kind: _Optional[_Union[MediaKind, str]] = ..., content_type: _Optional[str] = ..., size: _Optional[int] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class FollowUp(_message.Message):
    __slots__ = ("channel", "text")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    channel: str
    text: str
    def __init__(self, channel: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class ChannelText(_message.Message):
    __slots__ = ("channel", "text")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    channel: str
    text: str
    def __init__(self, channel: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class TargetState(_message.Message):
    __slots__ = ("target", "post_job_id", "post_job_state", "schedule_time", "publish_time", "external_url", "error_message", "state_reason", "follow_ups")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_STATE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_TIME_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_URL_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_UPS_FIELD_NUMBER: _ClassVar[int]
    target: _target_pb2.Target
    post_job_id: str
    post_job_state: str
    schedule_time: _timestamp_pb2.Timestamp
    publish_time: _timestamp_pb2.Timestamp
    external_url: str
    error_message: str
    state_reason: str
    follow_ups: _containers.RepeatedCompositeFieldContainer[FollowUpState]
    def __init__(self, target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., post_job_id: _Optional[str] = ..., post_job_state: _Optional[str] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., publish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., external_url: _Optional[str] = ..., error_message: _Optional[str] = ..., state_reason: _Optional[str] = ..., follow_ups: _Optional[_Iterable[_Union[FollowUpState, _Mapping]]] = ...) -> None: ...

class FollowUpState(_message.Message):
    __slots__ = ("part", "post_job_id", "post_job_state", "state_reason", "error_message", "external_url", "publish_time")
    PART_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_URL_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_TIME_FIELD_NUMBER: _ClassVar[int]
    part: int
    post_job_id: str
    post_job_state: str
    state_reason: str
    error_message: str
    external_url: str
    publish_time: _timestamp_pb2.Timestamp
    def __init__(self, part: _Optional[int] = ..., post_job_id: _Optional[str] = ..., post_job_state: _Optional[str] = ..., state_reason: _Optional[str] = ..., error_message: _Optional[str] = ..., external_url: _Optional[str] = ..., publish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
