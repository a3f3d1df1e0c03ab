import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from postflow.publisher.v1 import post_job_pb2 as _post_job_pb2
from postflow.publisher.v1 import social_account_pb2 as _social_account_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ActivityOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTIVITY_OUTCOME_UNSPECIFIED: _ClassVar[ActivityOutcome]
    ACTIVITY_OUTCOME_SUCCESS: _ClassVar[ActivityOutcome]
    ACTIVITY_OUTCOME_FAILED: _ClassVar[ActivityOutcome]
    ACTIVITY_OUTCOME_RATE_LIMITED: _ClassVar[ActivityOutcome]
    ACTIVITY_OUTCOME_UNKNOWN: _ClassVar[ActivityOutcome]
    ACTIVITY_OUTCOME_ABSENT: _ClassVar[ActivityOutcome]
ACTIVITY_OUTCOME_UNSPECIFIED: ActivityOutcome
ACTIVITY_OUTCOME_SUCCESS: ActivityOutcome
ACTIVITY_OUTCOME_FAILED: ActivityOutcome
ACTIVITY_OUTCOME_RATE_LIMITED: ActivityOutcome
ACTIVITY_OUTCOME_UNKNOWN: ActivityOutcome
ACTIVITY_OUTCOME_ABSENT: ActivityOutcome

class ConnectAccountRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "provider", "external_account_id", "display_name", "channels", "credentials", "request_id", "settings")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    provider: str
    external_account_id: str
    display_name: str
    channels: _containers.RepeatedScalarFieldContainer[str]
    credentials: Credentials
    request_id: str
    settings: _containers.ScalarMap[str, str]
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., provider: _Optional[str] = ..., external_account_id: _Optional[str] = ..., display_name: _Optional[str] = ..., channels: _Optional[_Iterable[str]] = ..., credentials: _Optional[_Union[Credentials, _Mapping]] = ..., request_id: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Credentials(_message.Message):
    __slots__ = ("access_token", "refresh_token", "user_token", "expire_time", "refresh_expire_time", "scopes")
    ACCESS_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REFRESH_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    REFRESH_EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    access_token: str
    refresh_token: str
    user_token: str
    expire_time: _timestamp_pb2.Timestamp
    refresh_expire_time: _timestamp_pb2.Timestamp
    scopes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, access_token: _Optional[str] = ..., refresh_token: _Optional[str] = ..., user_token: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., refresh_expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., scopes: _Optional[_Iterable[str]] = ...) -> None: ...

class ConnectAccountResponse(_message.Message):
    __slots__ = ("social_account",)
    SOCIAL_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    social_account: _social_account_pb2.SocialAccount
    def __init__(self, social_account: _Optional[_Union[_social_account_pb2.SocialAccount, _Mapping]] = ...) -> None: ...

class StartConnectRequest(_message.Message):
    __slots__ = ("organization_id", "provider", "redirect_uri", "social_account_id", "display_name", "channels", "settings", "request_id")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    REDIRECT_URI_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    provider: str
    redirect_uri: str
    social_account_id: str
    display_name: str
    channels: _containers.RepeatedScalarFieldContainer[str]
    settings: _containers.ScalarMap[str, str]
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., provider: _Optional[str] = ..., redirect_uri: _Optional[str] = ..., social_account_id: _Optional[str] = ..., display_name: _Optional[str] = ..., channels: _Optional[_Iterable[str]] = ..., settings: _Optional[_Mapping[str, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class StartConnectResponse(_message.Message):
    __slots__ = ("authorization_url", "state", "expire_time")
    AUTHORIZATION_URL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    authorization_url: str
    state: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, authorization_url: _Optional[str] = ..., state: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class FinishConnectRequest(_message.Message):
    __slots__ = ("organization_id", "state", "code", "external_account_id", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    state: str
    code: str
    external_account_id: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., state: _Optional[str] = ..., code: _Optional[str] = ..., external_account_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class FinishConnectResponse(_message.Message):
    __slots__ = ("social_account", "candidates")
    SOCIAL_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    social_account: _social_account_pb2.SocialAccount
    candidates: _containers.RepeatedCompositeFieldContainer[ConnectCandidate]
    def __init__(self, social_account: _Optional[_Union[_social_account_pb2.SocialAccount, _Mapping]] = ..., candidates: _Optional[_Iterable[_Union[ConnectCandidate, _Mapping]]] = ...) -> None: ...

class ConnectCandidate(_message.Message):
    __slots__ = ("external_account_id", "name", "channels")
    EXTERNAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    external_account_id: str
    name: str
    channels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, external_account_id: _Optional[str] = ..., name: _Optional[str] = ..., channels: _Optional[_Iterable[str]] = ...) -> None: ...

class RefreshCredentialsRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RefreshCredentialsResponse(_message.Message):
    __slots__ = ("social_account",)
    SOCIAL_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    social_account: _social_account_pb2.SocialAccount
    def __init__(self, social_account: _Optional[_Union[_social_account_pb2.SocialAccount, _Mapping]] = ...) -> None: ...

class GetAccountRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ...) -> None: ...

class GetAccountResponse(_message.Message):
    __slots__ = ("social_account",)
    SOCIAL_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    social_account: _social_account_pb2.SocialAccount
    def __init__(self, social_account: _Optional[_Union[_social_account_pb2.SocialAccount, _Mapping]] = ...) -> None: ...

class ListAccountsRequest(_message.Message):
    __slots__ = ("organization_id", "states", "provider", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    states: _containers.RepeatedScalarFieldContainer[_social_account_pb2.SocialAccountState]
    provider: str
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_social_account_pb2.SocialAccountState, str]]] = ..., provider: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAccountsResponse(_message.Message):
    __slots__ = ("social_accounts", "next_page_token")
    SOCIAL_ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    social_accounts: _containers.RepeatedCompositeFieldContainer[_social_account_pb2.SocialAccount]
    next_page_token: str
    def __init__(self, social_accounts: _Optional[_Iterable[_Union[_social_account_pb2.SocialAccount, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateAccountRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "display_name", "channels", "daily_caps", "allow_below_used", "etag", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    DAILY_CAPS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_BELOW_USED_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    display_name: str
    channels: ChannelList
    daily_caps: DailyCapList
    allow_below_used: bool
    etag: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., display_name: _Optional[str] = ..., channels: _Optional[_Union[ChannelList, _Mapping]] = ..., daily_caps: _Optional[_Union[DailyCapList, _Mapping]] = ..., allow_below_used: _Optional[bool] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ChannelList(_message.Message):
    __slots__ = ("channels",)
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, channels: _Optional[_Iterable[str]] = ...) -> None: ...

class DailyCapList(_message.Message):
    __slots__ = ("daily_caps",)
    DAILY_CAPS_FIELD_NUMBER: _ClassVar[int]
    daily_caps: _containers.RepeatedCompositeFieldContainer[_social_account_pb2.DailyCap]
    def __init__(self, daily_caps: _Optional[_Iterable[_Union[_social_account_pb2.DailyCap, _Mapping]]] = ...) -> None: ...

class UpdateAccountResponse(_message.Message):
    __slots__ = ("social_account",)
    SOCIAL_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    social_account: _social_account_pb2.SocialAccount
    def __init__(self, social_account: _Optional[_Union[_social_account_pb2.SocialAccount, _Mapping]] = ...) -> None: ...

class DisconnectAccountRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "note", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    note: str
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., note: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DisconnectAccountResponse(_message.Message):
    __slots__ = ("social_account", "in_flight_post_job_ids")
    SOCIAL_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_POST_JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    social_account: _social_account_pb2.SocialAccount
    in_flight_post_job_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, social_account: _Optional[_Union[_social_account_pb2.SocialAccount, _Mapping]] = ..., in_flight_post_job_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ListActivityRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "actions", "outcomes", "start_time", "end_time", "page_size", "page_token")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    actions: _containers.RepeatedScalarFieldContainer[_post_job_pb2.Action]
    outcomes: _containers.RepeatedScalarFieldContainer[ActivityOutcome]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., actions: _Optional[_Iterable[_Union[_post_job_pb2.Action, str]]] = ..., outcomes: _Optional[_Iterable[_Union[ActivityOutcome, str]]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListActivityResponse(_message.Message):
    __slots__ = ("activities", "next_page_token")
    ACTIVITIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    activities: _containers.RepeatedCompositeFieldContainer[Activity]
    next_page_token: str
    def __init__(self, activities: _Optional[_Iterable[_Union[Activity, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Activity(_message.Message):
    __slots__ = ("id", "action", "outcome", "post_job_id", "run", "create_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    POST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    action: _post_job_pb2.Action
    outcome: ActivityOutcome
    post_job_id: str
    run: int
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., action: _Optional[_Union[_post_job_pb2.Action, str]] = ..., outcome: _Optional[_Union[ActivityOutcome, str]] = ..., post_job_id: _Optional[str] = ..., run: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetUsageRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ...) -> None: ...

class GetUsageResponse(_message.Message):
    __slots__ = ("local_date", "time_zone", "usages")
    LOCAL_DATE_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    USAGES_FIELD_NUMBER: _ClassVar[int]
    local_date: str
    time_zone: str
    usages: _containers.RepeatedCompositeFieldContainer[Usage]
    def __init__(self, local_date: _Optional[str] = ..., time_zone: _Optional[str] = ..., usages: _Optional[_Iterable[_Union[Usage, _Mapping]]] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("action", "used", "cap", "is_override", "reset_time", "waiting")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    CAP_FIELD_NUMBER: _ClassVar[int]
    IS_OVERRIDE_FIELD_NUMBER: _ClassVar[int]
    RESET_TIME_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    action: _post_job_pb2.Action
    used: int
    cap: int
    is_override: bool
    reset_time: _timestamp_pb2.Timestamp
    waiting: int
    def __init__(self, action: _Optional[_Union[_post_job_pb2.Action, str]] = ..., used: _Optional[int] = ..., cap: _Optional[int] = ..., is_override: _Optional[bool] = ..., reset_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., waiting: _Optional[int] = ...) -> None: ...
