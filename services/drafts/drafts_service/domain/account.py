"""Publisher's social accounts as far as drafts say what is in the way of a target."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from drafts_service.domain.post_job import OPEN, PostJob
from drafts_service.domain.target import Target


class AccountState(StrEnum):
    CONNECTED = "CONNECTED"
    DISCONNECTED = "DISCONNECTED"
    ABSENT = "ABSENT"  # Publisher has said that it does not exist; version 0, so that any event of it is newer


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    organization_id: str
    id: str
    version: int
    state: AccountState


class Obstacle(StrEnum):
    """What is known of an account that is in the way of its targets."""

    NONE = ""
    ACCOUNT_NOT_FOUND = "ACCOUNT_NOT_FOUND"
    ACCOUNT_NOT_CONNECTED = "ACCOUNT_NOT_CONNECTED"


Obstacles = Mapping[str, Obstacle]
"""By account. Of one that is absent nothing is known."""


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


def still_waits(job: PostJob | None) -> bool:
    """The target is still to go out, and its job does not say what it waits for."""
    return job is None or (job.state in OPEN and not job.state_reason)


def reason_of(target: Target, job: PostJob | None, obstacles: Obstacles) -> str:
    """Why a target does not go out: what its job says, or what is in the way already."""
    if still_waits(job):
        return obstacles.get(target.social_account_id, Obstacle.NONE)
    return job.state_reason if job else ""
