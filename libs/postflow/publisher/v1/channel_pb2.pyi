import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Provider(_message.Message):
    __slots__ = ("name", "proof", "channels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    proof: str
    channels: _containers.RepeatedCompositeFieldContainer[Channel]
    def __init__(self, name: _Optional[str] = ..., proof: _Optional[str] = ..., channels: _Optional[_Iterable[_Union[Channel, _Mapping]]] = ...) -> None: ...

class Channel(_message.Message):
    __slots__ = ("name", "rules")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    name: str
    rules: ChannelRules
    def __init__(self, name: _Optional[str] = ..., rules: _Optional[_Union[ChannelRules, _Mapping]] = ...) -> None: ...

class ChannelRules(_message.Message):
    __slots__ = ("text", "caption", "title", "most_hashtags", "most_mentions", "takes_link", "media", "follow_ups", "destination", "link_in_text")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CAPTION_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    MOST_HASHTAGS_FIELD_NUMBER: _ClassVar[int]
    MOST_MENTIONS_FIELD_NUMBER: _ClassVar[int]
    TAKES_LINK_FIELD_NUMBER: _ClassVar[int]
    MEDIA_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_UPS_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    LINK_IN_TEXT_FIELD_NUMBER: _ClassVar[int]
    text: TextRule
    caption: TextRule
    title: TextRule
    most_hashtags: int
    most_mentions: int
    takes_link: bool
    media: MediaRule
    follow_ups: FollowUpRule
    destination: DestinationRule
    link_in_text: str
    def __init__(self, text: _Optional[_Union[TextRule, _Mapping]] = ..., caption: _Optional[_Union[TextRule, _Mapping]] = ..., title: _Optional[_Union[TextRule, _Mapping]] = ..., most_hashtags: _Optional[int] = ..., most_mentions: _Optional[int] = ..., takes_link: _Optional[bool] = ..., media: _Optional[_Union[MediaRule, _Mapping]] = ..., follow_ups: _Optional[_Union[FollowUpRule, _Mapping]] = ..., destination: _Optional[_Union[DestinationRule, _Mapping]] = ..., link_in_text: _Optional[str] = ...) -> None: ...

class TextRule(_message.Message):
    __slots__ = ("most", "unit", "required", "hidden")
    MOST_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_FIELD_NUMBER: _ClassVar[int]
    most: int
    unit: str
    required: bool
    hidden: bool
    def __init__(self, most: _Optional[int] = ..., unit: _Optional[str] = ..., required: _Optional[bool] = ..., hidden: _Optional[bool] = ...) -> None: ...

class MediaRule(_message.Message):
    __slots__ = ("most", "least", "image", "video", "document", "may_mix", "documents_apart", "most_bytes_together")
    MOST_FIELD_NUMBER: _ClassVar[int]
    LEAST_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    VIDEO_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    MAY_MIX_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTS_APART_FIELD_NUMBER: _ClassVar[int]
    MOST_BYTES_TOGETHER_FIELD_NUMBER: _ClassVar[int]
    most: int
    least: int
    image: ImageRule
    video: VideoRule
    document: DocumentRule
    may_mix: bool
    documents_apart: bool
    most_bytes_together: int
    def __init__(self, most: _Optional[int] = ..., least: _Optional[int] = ..., image: _Optional[_Union[ImageRule, _Mapping]] = ..., video: _Optional[_Union[VideoRule, _Mapping]] = ..., document: _Optional[_Union[DocumentRule, _Mapping]] = ..., may_mix: _Optional[bool] = ..., documents_apart: _Optional[bool] = ..., most_bytes_together: _Optional[int] = ...) -> None: ...

class ImageRule(_message.Message):
    __slots__ = ("types", "most_bytes", "least_ratio", "most_ratio", "most_pixels", "most_sides")
    TYPES_FIELD_NUMBER: _ClassVar[int]
    MOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    LEAST_RATIO_FIELD_NUMBER: _ClassVar[int]
    MOST_RATIO_FIELD_NUMBER: _ClassVar[int]
    MOST_PIXELS_FIELD_NUMBER: _ClassVar[int]
    MOST_SIDES_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedScalarFieldContainer[str]
    most_bytes: int
    least_ratio: float
    most_ratio: float
    most_pixels: int
    most_sides: int
    def __init__(self, types: _Optional[_Iterable[str]] = ..., most_bytes: _Optional[int] = ..., least_ratio: _Optional[float] = ..., most_ratio: _Optional[float] = ..., most_pixels: _Optional[int] = ..., most_sides: _Optional[int] = ...) -> None: ...

class VideoRule(_message.Message):
    __slots__ = ("types", "most_bytes", "least_duration", "most_duration", "least_ratio", "most_ratio")
    TYPES_FIELD_NUMBER: _ClassVar[int]
    MOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    LEAST_DURATION_FIELD_NUMBER: _ClassVar[int]
    MOST_DURATION_FIELD_NUMBER: _ClassVar[int]
    LEAST_RATIO_FIELD_NUMBER: _ClassVar[int]
    MOST_RATIO_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedScalarFieldContainer[str]
    most_bytes: int
    least_duration: _duration_pb2.Duration
    most_duration: _duration_pb2.Duration
    least_ratio: float
    most_ratio: float
    def __init__(self, types: _Optional[_Iterable[str]] = ..., most_bytes: _Optional[int] = ..., least_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., most_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., least_ratio: _Optional[float] = ..., most_ratio: _Optional[float] = ...) -> None: ...

class DocumentRule(_message.Message):
    __slots__ = ("types", "most_bytes")
    TYPES_FIELD_NUMBER: _ClassVar[int]
    MOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedScalarFieldContainer[str]
    most_bytes: int
    def __init__(self, types: _Optional[_Iterable[str]] = ..., most_bytes: _Optional[int] = ...) -> None: ...

class FollowUpRule(_message.Message):
    __slots__ = ("kind", "most", "text")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    most: int
    text: TextRule
    def __init__(self, kind: _Optional[str] = ..., most: _Optional[int] = ..., text: _Optional[_Union[TextRule, _Mapping]] = ...) -> None: ...

class DestinationRule(_message.Message):
    __slots__ = ("pattern", "description", "required")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    pattern: str
    description: str
    required: bool
    def __init__(self, pattern: _Optional[str] = ..., description: _Optional[str] = ..., required: _Optional[bool] = ...) -> None: ...

class Violation(_message.Message):
    __slots__ = ("field", "rule", "message", "warning")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    field: str
    rule: str
    message: str
    warning: bool
    def __init__(self, field: _Optional[str] = ..., rule: _Optional[str] = ..., message: _Optional[str] = ..., warning: _Optional[bool] = ...) -> None: ...
