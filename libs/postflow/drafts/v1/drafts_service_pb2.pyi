from google.protobuf import field_mask_pb2 as _field_mask_pb2
from postflow.drafts.v1 import draft_pb2 as _draft_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateDraftRequest(_message.Message):
    __slots__ = ("organization_id", "draft", "draft_id", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft: _draft_pb2.Draft
    draft_id: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft: _Optional[_Union[_draft_pb2.Draft, _Mapping]] = ..., draft_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class CreateDraftResponse(_message.Message):
    __slots__ = ("draft",)
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    draft: _draft_pb2.Draft
    def __init__(self, draft: _Optional[_Union[_draft_pb2.Draft, _Mapping]] = ...) -> None: ...

class GetDraftRequest(_message.Message):
    __slots__ = ("organization_id", "draft_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ...) -> None: ...

class GetDraftResponse(_message.Message):
    __slots__ = ("draft",)
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    draft: _draft_pb2.Draft
    def __init__(self, draft: _Optional[_Union[_draft_pb2.Draft, _Mapping]] = ...) -> None: ...

class UpdateDraftRequest(_message.Message):
    __slots__ = ("organization_id", "draft", "update_mask", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft: _draft_pb2.Draft
    update_mask: _field_mask_pb2.FieldMask
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft: _Optional[_Union[_draft_pb2.Draft, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateDraftResponse(_message.Message):
    __slots__ = ("draft", "in_flight_post_job_ids")
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_POST_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    draft: _draft_pb2.Draft
    in_flight_post_job_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, draft: _Optional[_Union[_draft_pb2.Draft, _Mapping]] = ..., in_flight_post_job_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ApproveDraftRequest(_message.Message):
    __slots__ = ("organization_id", "draft_id", "content_digest", "etag", "approver", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    APPROVER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    content_digest: str
    etag: str
    approver: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., content_digest: _Optional[str] = ..., etag: _Optional[str] = ..., approver: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ApproveDraftResponse(_message.Message):
    __slots__ = ("draft",)
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    draft: _draft_pb2.Draft
    def __init__(self, draft: _Optional[_Union[_draft_pb2.Draft, _Mapping]] = ...) -> None: ...

class BatchCreateDraftsRequest(_message.Message):
    __slots__ = ("organization_id", "drafts", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    drafts: _containers.RepeatedCompositeFieldContainer[NewDraft]
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., drafts: _Optional[_Iterable[_Union[NewDraft, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class NewDraft(_message.Message):
    __slots__ = ("draft", "draft_id")
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    draft: _draft_pb2.Draft
    draft_id: str
    def __init__(self, draft: _Optional[_Union[_draft_pb2.Draft, _Mapping]] = ..., draft_id: _Optional[str] = ...) -> None: ...

class BatchCreateDraftsResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[DraftResult]
    def __init__(self, results: _Optional[_Iterable[_Union[DraftResult, _Mapping]]] = ...) -> None: ...

class BatchApproveDraftsRequest(_message.Message):
    __slots__ = ("organization_id", "drafts", "approver", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    APPROVER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    drafts: _containers.RepeatedCompositeFieldContainer[DraftToApprove]
    approver: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., drafts: _Optional[_Iterable[_Union[DraftToApprove, _Mapping]]] = ..., approver: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DraftToApprove(_message.Message):
    __slots__ = ("draft_id", "content_digest", "etag")
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    draft_id: str
    content_digest: str
    etag: str
    def __init__(self, draft_id: _Optional[str] = ..., content_digest: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class BatchApproveDraftsResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[DraftResult]
    def __init__(self, results: _Optional[_Iterable[_Union[DraftResult, _Mapping]]] = ...) -> None: ...

class DraftResult(_message.Message):
    __slots__ = ("draft", "error")
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    draft: _draft_pb2.Draft
    error: DraftError
    def __init__(self, draft: _Optional[_Union[_draft_pb2.Draft, _Mapping]] = ..., error: _Optional[_Union[DraftError, _Mapping]] = ...) -> None: ...

class DraftError(_message.Message):
    __slots__ = ("code", "reason", "message", "field")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    code: str
    reason: str
    message: str
    field: str
    def __init__(self, code: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., field: _Optional[str] = ...) -> None: ...
