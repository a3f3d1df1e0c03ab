"""Publisher's social accounts, as far as they explain why a target cannot be sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from drafts_service.domain.post_job import OPEN, PostJob
from drafts_service.domain.target import Target

AccountKey = tuple[str, str]
"""Organization and account id."""


class AccountState(StrEnum):
    CONNECTED = "CONNECTED"
    DISCONNECTED = "DISCONNECTED"
    ABSENT = "ABSENT"  # Publisher has no such account; stored as version 0, so that any event of it is newer


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    organization_id: str
    id: str
    version: int
    state: AccountState


class Obstacle(StrEnum):
    """The reason why an account's targets cannot be sent; the value is the `state_reason` that callers see."""

    NONE = ""
    ACCOUNT_NOT_FOUND = "ACCOUNT_NOT_FOUND"
    ACCOUNT_NOT_CONNECTED = "ACCOUNT_NOT_CONNECTED"


Obstacles = Mapping[str, Obstacle]
"""By account id. An account that is missing here is unknown to Drafts."""


def obstacle_of(state: AccountState) -> Obstacle:
    match state:
        case AccountState.CONNECTED:
            return Obstacle.NONE
        case AccountState.DISCONNECTED:
            return Obstacle.ACCOUNT_NOT_CONNECTED
        case AccountState.ABSENT:
            return Obstacle.ACCOUNT_NOT_FOUND
        case _:
            assert_never(state)


def absent(organization_id: str, account_id: str) -> Account:
    return Account(organization_id=organization_id, id=account_id, version=0, state=AccountState.ABSENT)


def waits_without_reason(job: PostJob | None) -> bool:
    """Returns True if a target is still to be sent and its job does not say what it waits for."""
    return job is None or (job.state in OPEN and not job.state_reason)


def state_reason(target: Target, job: PostJob | None, obstacles: Obstacles) -> str:
    """Returns why a target is not sent: its job's own reason, else the obstacle of its account."""
    if waits_without_reason(job):
        return obstacles.get(target.social_account_id, Obstacle.NONE)
    return job.state_reason if job else ""
