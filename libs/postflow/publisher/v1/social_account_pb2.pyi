import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.publisher.v1 import post_job_pb2 as _post_job_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SocialAccountState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SOCIAL_ACCOUNT_STATE_UNSPECIFIED: _ClassVar[SocialAccountState]
    SOCIAL_ACCOUNT_STATE_CONNECTED: _ClassVar[SocialAccountState]
    SOCIAL_ACCOUNT_STATE_DISCONNECTED: _ClassVar[SocialAccountState]
SOCIAL_ACCOUNT_STATE_UNSPECIFIED: SocialAccountState
SOCIAL_ACCOUNT_STATE_CONNECTED: SocialAccountState
SOCIAL_ACCOUNT_STATE_DISCONNECTED: SocialAccountState

class SocialAccount(_message.Message):
    __slots__ = ("id", "provider", "external_account_id", "display_name", "channels", "state", "version", "create_time", "update_time", "state_reason", "error_message", "disconnect_time", "daily_caps", "etag", "credentials_info", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DISCONNECT_TIME_FIELD_NUMBER: _ClassVar[int]
    DAILY_CAPS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_INFO_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    provider: str
    external_account_id: str
    display_name: str
    channels: _containers.RepeatedScalarFieldContainer[str]
    state: SocialAccountState
    version: int
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    state_reason: str
    error_message: str
    disconnect_time: _timestamp_pb2.Timestamp
    daily_caps: _containers.RepeatedCompositeFieldContainer[DailyCap]
    etag: str
    credentials_info: CredentialsInfo
    settings: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., provider: _Optional[str] = ..., external_account_id: _Optional[str] = ..., display_name: _Optional[str] = ..., channels: _Optional[_Iterable[str]] = ..., state: _Optional[_Union[SocialAccountState, str]] = ..., version: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., state_reason: _Optional[str] = ..., error_message: _Optional[str] = ..., disconnect_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., daily_caps: _Optional[_Iterable[_Union[DailyCap, _Mapping]]] = ..., etag: _Optional[str] = ..., credentials_info: _Optional[_Union[CredentialsInfo, _Mapping]] = ..., settings: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CredentialsInfo(_message.Message):
    __slots__ = ("expire_time", "refresh_expire_time", "scopes", "is_refreshable", "last_refresh_time", "next_refresh_time", "refresh_error", "generation")
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    REFRESH_EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    IS_REFRESHABLE_FIELD_NUMBER: _ClassVar[int]
    LAST_REFRESH_TIME_FIELD_NUMBER: _ClassVar[int]
    NEXT_REFRESH_TIME_FIELD_NUMBER: _ClassVar[int]
    REFRESH_ERROR_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    expire_time: _timestamp_pb2.Timestamp
    refresh_expire_time: _timestamp_pb2.Timestamp
    scopes: _containers.RepeatedScalarFieldContainer[str]
    is_refreshable: bool
    last_refresh_time: _timestamp_pb2.Timestamp
    next_refresh_time: _timestamp_pb2.Timestamp
    refresh_error: str
    generation: int
    def __init__(self, expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., refresh_expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., scopes: _Optional[_Iterable[str]] = ..., is_refreshable: _Optional[bool] = ..., last_refresh_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_refresh_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., refresh_error: _Optional[str] = ..., generation: _Optional[int] = ...) -> None: ...

class DailyCap(_message.Message):
    __slots__ = ("action", "most")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    action: _post_job_pb2.Action
    most: int
    def __init__(self, action: _Optional[_Union[_post_job_pb2.Action, str]] = ..., most: _Optional[int] = ...) -> None: ...
