import datetime

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

class BrandRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BRAND_ROLE_UNSPECIFIED: _ClassVar[BrandRole]
    BRAND_ROLE_ADMIN: _ClassVar[BrandRole]
    BRAND_ROLE_EDITOR: _ClassVar[BrandRole]
BRAND_ROLE_UNSPECIFIED: BrandRole
BRAND_ROLE_ADMIN: BrandRole
BRAND_ROLE_EDITOR: BrandRole

class DraftSaved(_message.Message):
    __slots__ = ("organization_id", "draft_id", "version", "revision", "content", "content_digest", "approved", "targets", "requested_time", "category_id", "brand_id", "campaign_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_TIME_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_ID_FIELD_NUMBER: _ClassVar[int]
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    version: int
    revision: int
    content: bytes
    content_digest: str
    approved: bool
    targets: _containers.RepeatedCompositeFieldContainer[_target_pb2.Target]
    requested_time: _timestamp_pb2.Timestamp
    category_id: str
    brand_id: str
    campaign_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., version: _Optional[int] = ..., revision: _Optional[int] = ..., content: _Optional[bytes] = ..., content_digest: _Optional[str] = ..., approved: _Optional[bool] = ..., targets: _Optional[_Iterable[_Union[_target_pb2.Target, _Mapping]]] = ..., requested_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., category_id: _Optional[str] = ..., brand_id: _Optional[str] = ..., campaign_id: _Optional[str] = ...) -> None: ...

class BrandSaved(_message.Message):
    __slots__ = ("organization_id", "brand_id", "version", "name", "time_zone", "recipients")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    BRAND_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    RECIPIENTS_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    brand_id: str
    version: int
    name: str
    time_zone: str
    recipients: _containers.RepeatedCompositeFieldContainer[BrandRecipient]
    def __init__(self, organization_id: _Optional[str] = ..., brand_id: _Optional[str] = ..., version: _Optional[int] = ..., name: _Optional[str] = ..., time_zone: _Optional[str] = ..., recipients: _Optional[_Iterable[_Union[BrandRecipient, _Mapping]]] = ...) -> None: ...

class BrandRecipient(_message.Message):
    __slots__ = ("email", "name", "role")
    EMAIL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    email: str
    name: str
    role: BrandRole
    def __init__(self, email: _Optional[str] = ..., name: _Optional[str] = ..., role: _Optional[_Union[BrandRole, str]] = ...) -> None: ...
