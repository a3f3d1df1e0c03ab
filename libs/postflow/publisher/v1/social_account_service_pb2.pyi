from postflow.publisher.v1 import social_account_pb2 as _social_account_pb2
from postflow.rules.v1 import rules_pb2 as _rules_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ConnectAccountRequest(_message.Message):
    __slots__ = ("organization_id", "social_account_id", "provider", "external_account_id", "display_name", "channels", "credentials", "request_id")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    SOCIAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    social_account_id: str
    provider: str
    external_account_id: str
    display_name: str
    channels: _containers.RepeatedScalarFieldContainer[str]
    credentials: Credentials
    request_id: str
    def __init__(self, organization_id: _Optional[str] = ..., social_account_id: _Optional[str] = ..., provider: _Optional[str] = ..., external_account_id: _Optional[str] = ..., display_name: _Optional[str] = ..., channels: _Optional[_Iterable[str]] = ..., credentials: _Optional[_Union[Credentials, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class Credentials(_message.Message):
    __slots__ = ("access_token",)
    ACCESS_TOKEN_FIELD_NUMBER: _ClassVar[int]
    access_token: str
    def __init__(self, access_token: _Optional[str] = ...) -> None: ...

class ConnectAccountResponse(_message.Message):
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
