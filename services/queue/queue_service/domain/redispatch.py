"""The slots that an operator wants to be dispatched again, and what came of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selects slots of an organization: those named, those of the account, or all."""

    organization_id: str
    social_account_id: str = ""
    slot_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Redispatched:
    """Counts the slots whose commands are due for a repeat, and the accounts that dispatch had overlooked."""

    slots: int
    accounts: int
