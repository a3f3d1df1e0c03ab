import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.publisher.v1 import post_job_pb2 as _post_job_pb2
from postflow.publisher.v1 import social_account_pb2 as _social_account_pb2
from postflow.target.v1 import target_pb2 as _target_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PostJobEventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POST_JOB_EVENT_KIND_UNSPECIFIED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_CREATED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_SCHEDULED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_UNSCHEDULED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_STARTED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_SUCCEEDED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_FAILED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_DEFERRED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_BLOCKED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_UNCERTAIN: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_NEEDS_ATTENTION: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_MISSED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_CANCELED: _ClassVar[PostJobEventKind]
    POST_JOB_EVENT_KIND_ACCEPTED: _ClassVar[PostJobEventKind]
POST_JOB_EVENT_KIND_UNSPECIFIED: PostJobEventKind
POST_JOB_EVENT_KIND_CREATED: PostJobEventKind
POST_JOB_EVENT_KIND_SCHEDULED: PostJobEventKind
POST_JOB_EVENT_KIND_UNSCHEDULED: PostJobEventKind
POST_JOB_EVENT_KIND_STARTED: PostJobEventKind
POST_JOB_EVENT_KIND_SUCCEEDED: PostJobEventKind
POST_JOB_EVENT_KIND_FAILED: PostJobEventKind
POST_JOB_EVENT_KIND_DEFERRED: PostJobEventKind
POST_JOB_EVENT_KIND_BLOCKED: PostJobEventKind
POST_JOB_EVENT_KIND_UNCERTAIN: PostJobEventKind
POST_JOB_EVENT_KIND_NEEDS_ATTENTION: PostJobEventKind
POST_JOB_EVENT_KIND_MISSED: PostJobEventKind
POST_JOB_EVENT_KIND_CANCELED: PostJobEventKind
POST_JOB_EVENT_KIND_ACCEPTED: PostJobEventKind

class PostJobChanged(_message.Message):
    __slots__ = ("organization_id", "kind", "post_job")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    kind: PostJobEventKind
    post_job: _post_job_pb2.PostJob
    def __init__(self, organization_id: _Optional[str] = ..., kind: _Optional[_Union[PostJobEventKind, str]] = ..., post_job: _Optional[_Union[_post_job_pb2.PostJob, _Mapping]] = ...) -> None: ...

class CommandsAccepted(_message.Message):
    __slots__ = ("organization_id", "commands")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    commands: _containers.RepeatedCompositeFieldContainer[AcceptedCommand]
    def __init__(self, organization_id: _Optional[str] = ..., commands: _Optional[_Iterable[_Union[AcceptedCommand, _Mapping]]] = ...) -> None: ...

class AcceptedCommand(_message.Message):
    __slots__ = ("slot_id", "slot_revision", "draft_id", "target", "post_job_id", "version")
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_REVISION_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    slot_id: str
    slot_revision: int
    draft_id: str
    target: _target_pb2.Target
    post_job_id: str
    version: int
    def __init__(self, slot_id: _Optional[str] = ..., slot_revision: _Optional[int] = ..., draft_id: _Optional[str] = ..., target: _Optional[_Union[_target_pb2.Target, _Mapping]] = ..., post_job_id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class SocialAccountConnected(_message.Message):
    __slots__ = ("organization_id", "social_account")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account: _social_account_pb2.SocialAccount
    def __init__(self, organization_id: _Optional[str] = ..., social_account: _Optional[_Union[_social_account_pb2.SocialAccount, _Mapping]] = ...) -> None: ...

class SocialAccountDisconnected(_message.Message):
    __slots__ = ("organization_id", "social_account", "error_message")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account: _social_account_pb2.SocialAccount
    error_message: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account: _Optional[_Union[_social_account_pb2.SocialAccount, _Mapping]] = ..., error_message: _Optional[str] = ...) -> None: ...

class SocialAccountExpiresSoon(_message.Message):
    __slots__ = ("organization_id", "social_account", "expire_time", "version", "is_failing")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    IS_FAILING_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account: _social_account_pb2.SocialAccount
    expire_time: _timestamp_pb2.Timestamp
    version: int
    is_failing: bool
    def __init__(self, organization_id: _Optional[str] = ..., social_account: _Optional[_Union[_social_account_pb2.SocialAccount, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[int] = ..., is_failing: _Optional[bool] = ...) -> None: ...

class PublisherRestored(_message.Message):
    __slots__ = ("restored_time",)
    RESTORED_TIME_FIELD_NUMBER: _ClassVar[int]
    restored_time: _timestamp_pb2.Timestamp
    def __init__(self, restored_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
