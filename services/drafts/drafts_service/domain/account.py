"""Publisher's social accounts, as far as they explain why a target cannot be sent."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from drafts_service.domain.post_job import OPEN, DraftState, JobState, PostJob, counts
from drafts_service.domain.target import Target
from servicekit.faults import Unavailable

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
    # Never changes; empty of an account that does not exist.
    provider: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAccount:
    """An account as far as it is known. The provider is empty if it is not known, or if there is no such account."""

    obstacle: "Obstacle"
    provider: str


class Obstacle(StrEnum):
    """The reason why an account's targets cannot be sent; the value is the `state_reason` that callers see."""

    NONE = ""
    ACCOUNT_NOT_FOUND = "ACCOUNT_NOT_FOUND"
    ACCOUNT_NOT_CONNECTED = "ACCOUNT_NOT_CONNECTED"


Obstacles = Mapping[str, Obstacle]
"""By account id. An account that is missing here is unknown to Drafts."""


Providers = Mapping[str, str]
"""By account id. One that is missing or empty is not known."""


class AccountsUnchecked(Unavailable):
    """Publisher has not been asked about some accounts of the targets, whose rules are not known without it.

    No caller sees it: the accounts are learned, and the work is done again.
    """

    def __init__(self, targets: Sequence[Target]) -> None:
        super().__init__("ACCOUNTS_UNCHECKED", "the accounts of the targets are not known yet; try again in a moment")
        self.targets = targets


def require_learned(targets: Sequence[Target], obstacles: Obstacles, providers: Providers) -> None:
    """Raises AccountsUnchecked if the provider of an account is not known, though there may be such an account.

    An account that an earlier release has stored has none.
    """
    if any(
        not providers.get(each.social_account_id)
        and obstacles.get(each.social_account_id) is not Obstacle.ACCOUNT_NOT_FOUND
        for each in targets
    ):
        raise AccountsUnchecked(targets)


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


def shown_state(
    folded: DraftState, targets: Collection[Target], jobs: Iterable[PostJob], obstacles: Obstacles
) -> DraftState:
    """Returns the state of a draft as callers see it: BLOCKED if nothing that is scheduled can be sent.

    This is decided whenever the draft is read, because accounts come and go without an event of their jobs: Queue hands
    over nothing for an account that is not connected, so Publisher says nothing of it.
    """
    if folded is not DraftState.SCHEDULED:
        return folded
    scheduled = [job for job in jobs if job.schedule_time and job.state in OPEN and counts(job, targets)]
    can_be_sent = (job for job in scheduled if not _is_held_up(job, obstacles))
    return DraftState.BLOCKED if scheduled and not any(can_be_sent) else folded


def _is_held_up(job: PostJob, obstacles: Obstacles) -> bool:
    if waits_without_reason(job):
        return obstacles.get(job.target.social_account_id, Obstacle.NONE) is not Obstacle.NONE
    return job.state is JobState.BLOCKED


def state_reason(target: Target, job: PostJob | None, obstacles: Obstacles) -> str:
    """Returns why a target is not sent: its job's own reason, else the obstacle of its account."""
    if waits_without_reason(job):
        return obstacles.get(target.social_account_id, Obstacle.NONE)
    return job.state_reason if job else ""
