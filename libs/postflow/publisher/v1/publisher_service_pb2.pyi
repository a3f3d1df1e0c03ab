import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.drafts.v1 import draft_pb2 as _draft_pb2
from postflow.drafts.v1 import drafts_events_pb2 as _drafts_events_pb2
from postflow.publisher.v1 import channel_pb2 as _channel_pb2
from postflow.publisher.v1 import destination_pb2 as _destination_pb2
from postflow.publisher.v1 import explanation_pb2 as _explanation_pb2
from postflow.publisher.v1 import hold_pb2 as _hold_pb2
from postflow.publisher.v1 import post_job_pb2 as _post_job_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from postflow.target.v1 import target_pb2 as _target_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResolveOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESOLVE_OUTCOME_UNSPECIFIED: _ClassVar[ResolveOutcome]
    RESOLVE_OUTCOME_PUBLISHED: _ClassVar[ResolveOutcome]
    RESOLVE_OUTCOME_NOT_PUBLISHED: _ClassVar[ResolveOutcome]

class WithdrawOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WITHDRAW_OUTCOME_UNSPECIFIED: _ClassVar[WithdrawOutcome]
    WITHDRAW_OUTCOME_WITHDRAWN: _ClassVar[WithdrawOutcome]
    WITHDRAW_OUTCOME_TOO_LATE: _ClassVar[WithdrawOutcome]
    WITHDRAW_OUTCOME_PUBLISHED: _ClassVar[WithdrawOutcome]

class CancelOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CANCEL_OUTCOME_UNSPECIFIED: _ClassVar[CancelOutcome]
    CANCEL_OUTCOME_CANCELED: _ClassVar[CancelOutcome]
    CANCEL_OUTCOME_TOO_LATE: _ClassVar[CancelOutcome]
    CANCEL_OUTCOME_ENDED: _ClassVar[CancelOutcome]

class PublishNowOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUBLISH_NOW_OUTCOME_UNSPECIFIED: _ClassVar[PublishNowOutcome]
    PUBLISH_NOW_OUTCOME_STARTED: _ClassVar[PublishNowOutcome]
    PUBLISH_NOW_OUTCOME_REFUSED: _ClassVar[PublishNowOutcome]
RESOLVE_OUTCOME_UNSPECIFIED: ResolveOutcome
RESOLVE_OUTCOME_PUBLISHED: ResolveOutcome
RESOLVE_OUTCOME_NOT_PUBLISHED: ResolveOutcome
WITHDRAW_OUTCOME_UNSPECIFIED: WithdrawOutcome
WITHDRAW_OUTCOME_WITHDRAWN: WithdrawOutcome
WITHDRAW_OUTCOME_TOO_LATE: WithdrawOutcome
WITHDRAW_OUTCOME_PUBLISHED: WithdrawOutcome
CANCEL_OUTCOME_UNSPECIFIED: CancelOutcome
CANCEL_OUTCOME_CANCELED: CancelOutcome
CANCEL_OUTCOME_TOO_LATE: CancelOutcome
CANCEL_OUTCOME_ENDED: CancelOutcome
PUBLISH_NOW_OUTCOME_UNSPECIFIED: PublishNowOutcome
PUBLISH_NOW_OUTCOME_STARTED: PublishNowOutcome
PUBLISH_NOW_OUTCOME_REFUSED: PublishNowOutcome

class GetPostJobRequest(_message.Message):
    __slots__ = ("organization_id", "post_job_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    post_job_id: str
    def __init__(self, organization_id: _Optional[str] = ..., post_job_id: _Optional[str] = ...) -> None: ...

class GetPostJobResponse(_message.Message):
    __slots__ = ("post_job", "attempts", "resolutions")
    POST_JOB_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    RESOLUTIONS_FIELD_NUMBER: _ClassVar[int]
    post_job: _post_job_pb2.PostJob
    attempts: _containers.RepeatedCompositeFieldContainer[_post_job_pb2.Attempt]
    resolutions: _containers.RepeatedCompositeFieldContainer[Resolution]
    def __init__(self, post_job: _Optional[_Union[_post_job_pb2.PostJob, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[_post_job_pb2.Attempt, _Mapping]]] = ..., resolutions: _Optional[_Iterable[_Union[Resolution, _Mapping]]] = ...) -> None: ...

class Resolution(_message.Message):
    __slots__ = ("run", "outcome", "external_id", "external_url", "resolver", "note", "create_time")
    RUN_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_URL_FIELD_NUMBER: _ClassVar[int]
    RESOLVER_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    run: int
    outcome: ResolveOutcome
    external_id: str
    external_url: str
    resolver: str
    note: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, run: _Optional[int] = ..., outcome: _Optional[_Union[ResolveOutcome, str]] = ..., external_id: _Optional[str] = ..., external_url: _Optional[str] = ..., resolver: _Optional[str] = ..., note: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ResolvePostJobRequest(_message.Message):
    __slots__ = ("organization_id", "post_job_id", "outcome", "external_id", "external_url", "publish_time", "resolver", "note", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_URL_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_TIME_FIELD_NUMBER: _ClassVar[int]
    RESOLVER_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    post_job_id: str
    outcome: ResolveOutcome
    external_id: str
    external_url: str
    publish_time: _timestamp_pb2.Timestamp
    resolver: str
    note: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., post_job_id: _Optional[str] = ..., outcome: _Optional[_Union[ResolveOutcome, str]] = ..., external_id: _Optional[str] = ..., external_url: _Optional[str] = ..., publish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., resolver: _Optional[str] = ..., note: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResolvePostJobResponse(_message.Message):
    __slots__ = ("post_job",)
    POST_JOB_FIELD_NUMBER: _ClassVar[int]
    post_job: _post_job_pb2.PostJob
    def __init__(self, post_job: _Optional[_Union[_post_job_pb2.PostJob, _Mapping]] = ...) -> None: ...

class ListPostJobsRequest(_message.Message):
    __slots__ = ("organization_id", "draft_id", "social_account_id", "states", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    social_account_id: str
    states: _containers.RepeatedScalarFieldContainer[_post_job_pb2.PostJobState]
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_post_job_pb2.PostJobState, str]]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPostJobsResponse(_message.Message):
    __slots__ = ("post_jobs", "next_page_token")
    POST_JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    post_jobs: _containers.RepeatedCompositeFieldContainer[_post_job_pb2.PostJob]
    next_page_token: str
    def __init__(self, post_jobs: _Optional[_Iterable[_Union[_post_job_pb2.PostJob, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WithdrawContentRequest(_message.Message):
    __slots__ = ("organization_id", "draft_id", "below_revision")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    BELOW_REVISION_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    below_revision: int
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., below_revision: _Optional[int] = ...) -> None: ...

class WithdrawContentResponse(_message.Message):
    __slots__ = ("outcome", "in_flight_post_job_ids", "published")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_POST_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    outcome: WithdrawOutcome
    in_flight_post_job_ids: _containers.RepeatedScalarFieldContainer[str]
    published: _containers.RepeatedCompositeFieldContainer[PublishedTarget]
    def __init__(self, outcome: _Optional[_Union[WithdrawOutcome, str]] = ..., in_flight_post_job_ids: _Optional[_Iterable[str]] = ..., published: _Optional[_Iterable[_Union[PublishedTarget, _Mapping]]] = ...) -> None: ...

class PublishedTarget(_message.Message):
    __slots__ = ("post_job_id", "target", "content_revision", "publish_time", "external_id", "external_url", "version", "schedule_time", "part")
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    CONTENT_REVISION_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_TIME_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_URL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TIME_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    post_job_id: str
    target: _target_pb2.Target
    content_revision: int
    publish_time: _timestamp_pb2.Timestamp
    external_id: str
    external_url: str
    version: int
    schedule_time: _timestamp_pb2.Timestamp
    part: int
    def __init__(self, post_job_id: _Optional[str] = ..., target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., content_revision: _Optional[int] = ..., publish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., external_id: _Optional[str] = ..., external_url: _Optional[str] = ..., version: _Optional[int] = ..., schedule_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., part: _Optional[int] = ...) -> None: ...

class CancelPostJobsRequest(_message.Message):
    __slots__ = ("organization_id", "posts", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    POSTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    posts: _containers.RepeatedCompositeFieldContainer[SlotPost]
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., posts: _Optional[_Iterable[_Union[SlotPost, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class SlotPost(_message.Message):
    __slots__ = ("draft_id", "target", "slot_id", "slot_revision", "slot_sequence")
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_REVISION_FIELD_NUMBER: _ClassVar[int]
    SLOT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    draft_id: str
    target: _target_pb2.Target
    slot_id: str
    slot_revision: int
    slot_sequence: int
    def __init__(self, draft_id: _Optional[str] = ..., target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., slot_id: _Optional[str] = ..., slot_revision: _Optional[int] = ..., slot_sequence: _Optional[int] = ...) -> None: ...

class CancelPostJobsResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CancelResult]
    def __init__(self, results: _Optional[_Iterable[_Union[CancelResult, _Mapping]]] = ...) -> None: ...

class CancelResult(_message.Message):
    __slots__ = ("outcome", "post_job")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_FIELD_NUMBER: _ClassVar[int]
    outcome: CancelOutcome
    post_job: _post_job_pb2.PostJob
    def __init__(self, outcome: _Optional[_Union[CancelOutcome, str]] = ..., post_job: _Optional[_Union[_post_job_pb2.PostJob, _Mapping]] = ...) -> None: ...

class PutHoldRequest(_message.Message):
    __slots__ = ("organization_id", "hold_id", "scope", "scope_id", "revision", "reason", "holder", "request_id", "end_time")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    hold_id: str
    scope: _hold_pb2.HoldScope
    scope_id: str
    revision: int
    reason: str
    holder: str
    request_id: str
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, organization_id: _Optional[str] = ..., hold_id: _Optional[str] = ..., scope: _Optional[_Union[_hold_pb2.HoldScope, str]] = ..., scope_id: _Optional[str] = ..., revision: _Optional[int] = ..., reason: _Optional[str] = ..., holder: _Optional[str] = ..., request_id: _Optional[str] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PutHoldResponse(_message.Message):
    __slots__ = ("hold", "in_flight_post_job_ids", "in_flight_count")
    HOLD_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_POST_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_COUNT_FIELD_NUMBER: _ClassVar[int]
    hold: _hold_pb2.Hold
    in_flight_post_job_ids: _containers.RepeatedScalarFieldContainer[str]
    in_flight_count: int
    def __init__(self, hold: _Optional[_Union[_hold_pb2.Hold, _Mapping]] = ..., in_flight_post_job_ids: _Optional[_Iterable[str]] = ..., in_flight_count: _Optional[int] = ...) -> None: ...

class ReleaseHoldRequest(_message.Message):
    __slots__ = ("organization_id", "hold_id", "revision", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    hold_id: str
    revision: int
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., hold_id: _Optional[str] = ..., revision: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class ReleaseHoldResponse(_message.Message):
    __slots__ = ("hold",)
    HOLD_FIELD_NUMBER: _ClassVar[int]
    hold: _hold_pb2.Hold
    def __init__(self, hold: _Optional[_Union[_hold_pb2.Hold, _Mapping]] = ...) -> None: ...

class ListHoldsRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "page_size", "page_token", "scopes", "scope_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    SCOPE_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    page_size: int
    page_token: str
    scopes: _containers.RepeatedScalarFieldContainer[_hold_pb2.HoldScope]
    scope_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., scopes: _Optional[_Iterable[_Union[_hold_pb2.HoldScope, str]]] = ..., scope_id: _Optional[str] = ...) -> None: ...

class ListHoldsResponse(_message.Message):
    __slots__ = ("holds", "next_page_token")
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    holds: _containers.RepeatedCompositeFieldContainer[_hold_pb2.Hold]
    next_page_token: str
    def __init__(self, holds: _Optional[_Iterable[_Union[_hold_pb2.Hold, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RetryPostJobRequest(_message.Message):
    __slots__ = ("organization_id", "post_job_id", "not_after", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    post_job_id: str
    not_after: _timestamp_pb2.Timestamp
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., post_job_id: _Optional[str] = ..., not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class RetryPostJobResponse(_message.Message):
    __slots__ = ("post_job",)
    POST_JOB_FIELD_NUMBER: _ClassVar[int]
    post_job: _post_job_pb2.PostJob
    def __init__(self, post_job: _Optional[_Union[_post_job_pb2.PostJob, _Mapping]] = ...) -> None: ...

class PublishNowRequest(_message.Message):
    __slots__ = ("organization_id", "draft", "targets", "over_cap", "not_after", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    OVER_CAP_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft: _drafts_events_pb2.DraftSaved
    targets: _containers.RepeatedCompositeFieldContainer[_target_pb2.Target]
    over_cap: bool
    not_after: _timestamp_pb2.Timestamp
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., draft: _Optional[_Union[_drafts_events_pb2.DraftSaved, _Mapping]] = ..., targets: _Optional[_Iterable[_Union[_target_pb2.Target, _Mapping]]] = ..., over_cap: _Optional[bool] = ..., not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class PublishNowResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[PublishNowResult]
    def __init__(self, results: _Optional[_Iterable[_Union[PublishNowResult, _Mapping]]] = ...) -> None: ...

class PublishNowResult(_message.Message):
    __slots__ = ("outcome", "reason", "post_job")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_FIELD_NUMBER: _ClassVar[int]
    outcome: PublishNowOutcome
    reason: str
    post_job: _post_job_pb2.PostJob
    def __init__(self, outcome: _Optional[_Union[PublishNowOutcome, str]] = ..., reason: _Optional[str] = ..., post_job: _Optional[_Union[_post_job_pb2.PostJob, _Mapping]] = ...) -> None: ...

class ExplainPostJobRequest(_message.Message):
    __slots__ = ("organization_id", "post_job_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    post_job_id: str
    def __init__(self, organization_id: _Optional[str] = ..., post_job_id: _Optional[str] = ...) -> None: ...

class ExplainPostJobResponse(_message.Message):
    __slots__ = ("post_job", "checks", "verdict", "clear_time", "sentence", "read_time")
    POST_JOB_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    CLEAR_TIME_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    READ_TIME_FIELD_NUMBER: _ClassVar[int]
    post_job: _post_job_pb2.PostJob
    checks: _containers.RepeatedCompositeFieldContainer[_explanation_pb2.PostJobCheck]
    verdict: str
    clear_time: _timestamp_pb2.Timestamp
    sentence: str
    read_time: _timestamp_pb2.Timestamp
    def __init__(self, post_job: _Optional[_Union[_post_job_pb2.PostJob, _Mapping]] = ..., checks: _Optional[_Iterable[_Union[_explanation_pb2.PostJobCheck, _Mapping]]] = ..., verdict: _Optional[str] = ..., clear_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., sentence: _Optional[str] = ..., read_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class WatchPostJobsRequest(_message.Message):
    __slots__ = ("organization_id", "draft_id", "social_account_id", "resume_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    draft_id: str
    social_account_id: str
    resume_token: str
    def __init__(self, organization_id: _Optional[str] = ..., draft_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., resume_token: _Optional[str] = ...) -> None: ...

class WatchPostJobsResponse(_message.Message):
    __slots__ = ("post_job", "is_caught_up", "resume_token")
    POST_JOB_FIELD_NUMBER: _ClassVar[int]
    IS_CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    post_job: _post_job_pb2.PostJob
    is_caught_up: bool
    resume_token: str
    def __init__(self, post_job: _Optional[_Union[_post_job_pb2.PostJob, _Mapping]] = ..., is_caught_up: _Optional[bool] = ..., resume_token: _Optional[str] = ...) -> None: ...

class ListDestinationsRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "states", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    states: _containers.RepeatedScalarFieldContainer[_destination_pb2.DestinationState]
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_destination_pb2.DestinationState, str]]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDestinationsResponse(_message.Message):
    __slots__ = ("destinations", "next_page_token")
    DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    destinations: _containers.RepeatedCompositeFieldContainer[_destination_pb2.Destination]
    next_page_token: str
    def __init__(self, destinations: _Optional[_Iterable[_Union[_destination_pb2.Destination, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateDestinationRequest(_message.Message):
    __slots__ = ("organization_id", "target", "state", "note", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    target: _target_pb2.Target
    state: _destination_pb2.DestinationState
    note: str
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., state: _Optional[_Union[_destination_pb2.DestinationState, str]] = ..., note: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class UpdateDestinationResponse(_message.Message):
    __slots__ = ("destination",)
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    destination: _destination_pb2.Destination
    def __init__(self, destination: _Optional[_Union[_destination_pb2.Destination, _Mapping]] = ...) -> None: ...

class ListChannelsRequest(_message.Message):
    __slots__ = ("organization_id", "provider")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    provider: str
    def __init__(self, organization_id: _Optional[str] = ..., provider: _Optional[str] = ...) -> None: ...

class ListChannelsResponse(_message.Message):
    __slots__ = ("providers",)
    PROVIDERS_FIELD_NUMBER: _ClassVar[int]
    providers: _containers.RepeatedCompositeFieldContainer[_channel_pb2.Provider]
    def __init__(self, providers: _Optional[_Iterable[_Union[_channel_pb2.Provider, _Mapping]]] = ...) -> None: ...

class ValidateContentRequest(_message.Message):
    __slots__ = ("organization_id", "content", "targets")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    content: _draft_pb2.DraftContent
    targets: _containers.RepeatedCompositeFieldContainer[_target_pb2.Target]
    def __init__(self, organization_id: _Optional[str] = ..., content: _Optional[_Union[_draft_pb2.DraftContent, _Mapping]] = ..., targets: _Optional[_Iterable[_Union[_target_pb2.Target, _Mapping]]] = ...) -> None: ...

class ValidateContentResponse(_message.Message):
    __slots__ = ("valid", "targets")
    VALID_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    valid: bool
    targets: _containers.RepeatedCompositeFieldContainer[TargetValidation]
    def __init__(self, valid: _Optional[bool] = ..., targets: _Optional[_Iterable[_Union[TargetValidation, _Mapping]]] = ...) -> None: ...

class TargetValidation(_message.Message):
    __slots__ = ("target", "unchecked_reason", "provider", "violations")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    UNCHECKED_REASON_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    target: _target_pb2.Target
    unchecked_reason: str
    provider: str
    violations: _containers.RepeatedCompositeFieldContainer[_channel_pb2.Violation]
    def __init__(self, target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., unchecked_reason: _Optional[str] = ..., provider: _Optional[str] = ..., violations: _Optional[_Iterable[_Union[_channel_pb2.Violation, _Mapping]]] = ...) -> None: ...

class InspectMediaRequest(_message.Message):
    __slots__ = ("organization_id", "urls")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    URLS_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    urls: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, organization_id: _Optional[str] = ..., urls: _Optional[_Iterable[str]] = ...) -> None: ...

class InspectMediaResponse(_message.Message):
    __slots__ = ("media",)
    MEDIA_FIELD_NUMBER: _ClassVar[int]
    media: _containers.RepeatedCompositeFieldContainer[InspectedMedia]
    def __init__(self, media: _Optional[_Iterable[_Union[InspectedMedia, _Mapping]]] = ...) -> None: ...

class InspectedMedia(_message.Message):
    __slots__ = ("url", "facts", "problem_reason", "problem_message", "may_pass")
    URL_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_REASON_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    MAY_PASS_FIELD_NUMBER: _ClassVar[int]
    url: str
    facts: _draft_pb2.MediaFacts
    problem_reason: str
    problem_message: str
    may_pass: bool
    def __init__(self, url: _Optional[str] = ..., facts: _Optional[_Union[_draft_pb2.MediaFacts, _Mapping]] = ..., problem_reason: _Optional[str] = ..., problem_message: _Optional[str] = ..., may_pass: _Optional[bool] = ...) -> None: ...
