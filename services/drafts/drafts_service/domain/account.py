"""Publisher's social accounts as far as drafts say what is in the way of a target."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from drafts_service.domain.post_job import OPEN, PostJob
from drafts_service.domain.target import Target


class AccountState(StrEnum):
    CONNECTED = "CONNECTED"
    DISCONNECTED = "DISCONNECTED"


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


def obstacle_of(account: Account | None) -> Obstacle:
    if account is None:
        return Obstacle.ACCOUNT_NOT_FOUND
    return Obstacle.NONE if account.state is AccountState.CONNECTED else Obstacle.ACCOUNT_NOT_CONNECTED


def still_waits(job: PostJob | None) -> bool:
    """The target is still to go out, and its job does not say what it waits for."""
    return job is None or (job.state in OPEN and not job.state_reason)


def reason_of(target: Target, job: PostJob | None, obstacles: Obstacles) -> str:
    """Why a target does not go out: what its job says, or what is in the way already."""
    if still_waits(job):
        return obstacles.get(target.social_account_id, Obstacle.NONE)
    return job.state_reason if job else ""
