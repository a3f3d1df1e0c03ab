from postflow.rules.v1 import rules_pb2 as _rules_pb2
from postflow.target.v1 import target_pb2 as _target_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FindDraftTargetsRequest(_message.Message):
    __slots__ = ("organization_id", "drafts")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    drafts: _containers.RepeatedCompositeFieldContainer[DraftName]
    def __init__(self, organization_id: _Optional[str] = ..., drafts: _Optional[_Iterable[_Union[DraftName, _Mapping]]] = ...) -> None: ...

class DraftName(_message.Message):
    __slots__ = ("organization_id", "draft_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ...) -> None: ...

class FindDraftTargetsResponse(_message.Message):
    __slots__ = ("drafts",)
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    drafts: _containers.RepeatedCompositeFieldContainer[DraftTargets]
    def __init__(self, drafts: _Optional[_Iterable[_Union[DraftTargets, _Mapping]]] = ...) -> None: ...

class DraftTargets(_message.Message):
    __slots__ = ("organization_id", "draft_id", "revision", "targets", "category_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    revision: int
    targets: _containers.RepeatedCompositeFieldContainer[_target_pb2.Target]
    category_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., revision: _Optional[int] = ..., targets: _Optional[_Iterable[_Union[_target_pb2.Target, _Mapping]]] = ..., category_id: _Optional[str] = ...) -> None: ...
