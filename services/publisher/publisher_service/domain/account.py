"""A social account: who posts, where, and whether it can."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class AccountState(StrEnum):
    CONNECTED = "CONNECTED"
    DISCONNECTED = "DISCONNECTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialAccount:
    organization_id: str
    id: str
    provider: str
    external_account_id: str
    display_name: str
    channels: tuple[str, ...]
    state: AccountState
    version: int
    create_time: datetime
    update_time: datetime
