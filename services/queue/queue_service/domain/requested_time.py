"""The time that a draft asks for: which of its accounts can give it, and why not."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from queue_service.domain.account import AccountKey
from queue_service.domain.booking import TOLERANCE
from queue_service.domain.draft import DraftKey, SavedDraft
from queue_service.domain.slot import HORIZON, BlockingSlot, SlotOrigin, SlotState


class RefusalReason(StrEnum):
    TIME_PASSED = "TIME_PASSED"
    TIME_TOO_FAR = "TIME_TOO_FAR"
    SLOT_TAKEN = "SLOT_TAKEN"
    ALREADY_QUEUED = "ALREADY_QUEUED"
    DRAFT_PUBLISHED = "DRAFT_PUBLISHED"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSlot:
    """The live slot of a draft on an account."""

    slot_id: str
    schedule_time: datetime
    state: SlotState
    origin: SlotOrigin


class AskedBefore(NamedTuple):
    """Holds what a draft asked for by the last announcement that Queue knows."""

    version: int
    is_approved: bool
    requested_time: datetime | None
    accounts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An approved draft asks for a time on one of its accounts."""

    draft: DraftKey
    draft_version: int
    social_account_id: str
    schedule_time: datetime

    @property
    def account(self) -> AccountKey:
        return self.draft[0], self.social_account_id


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTime:
    request: Request
    reason: RefusalReason
    message: str


class Step(Enum):
    """Says what is to be done about a request that is not refused."""

    KEEP = auto()  # the draft has a slot at that time
    BOOK = auto()
    MOVE = auto()


def asks_for_slots(saved: SavedDraft) -> bool:
    return saved.is_approved and saved.requested_time is not None


def asking_accounts(saved: SavedDraft, before: AskedBefore | None) -> frozenset[str]:
    """Returns the accounts on which an announcement asks for a time that was neither given nor refused yet.

    Other changes of a draft, such as of its category, ask for nothing: a slot that was removed stays removed.
    """
    if not asks_for_slots(saved):
        return frozenset()
    accounts = saved.draft.account_ids
    if before is None:
        return accounts
    if saved.version <= before.version:
        return frozenset()
    is_repeated = before.is_approved and before.requested_time == saved.requested_time
    return accounts - before.accounts if is_repeated else accounts


def answer(
    request: Request, *, live: LiveSlot | None, has_targets: bool, blocking: BlockingSlot | None, now: datetime
) -> Step | RefusedTime:
    """Decides a request; `has_targets` says whether a target on the account is still to be sent.

    `blocking` is a slot of another draft within a minute of the time. A slot that somebody else gave to the draft, and
    one that has been dispatched, is not moved.
    """
    if live is not None:
        if live.schedule_time == request.schedule_time:
            return Step.KEEP
        if live.origin is not SlotOrigin.DRAFT or live.state is not SlotState.SCHEDULED:
            return _refused(request, RefusalReason.ALREADY_QUEUED, "the draft already has a slot on the account")
    elif not has_targets:
        return _refused(request, RefusalReason.DRAFT_PUBLISHED, "the draft has been published on the account")
    if request.schedule_time < now - TOLERANCE:
        return _refused(request, RefusalReason.TIME_PASSED, "the time has passed")
    if request.schedule_time > now + HORIZON:
        return _refused(request, RefusalReason.TIME_TOO_FAR, f"the time is more than {HORIZON.days} days ahead")
    if blocking is not None:
        return slot_taken(request)
    return Step.MOVE if live else Step.BOOK


def slot_taken(request: Request) -> RefusedTime:
    return _refused(request, RefusalReason.SLOT_TAKEN, "the account has a slot less than a minute away")


def _refused(request: Request, reason: RefusalReason, message: str) -> RefusedTime:
    return RefusedTime(request=request, reason=reason, message=message)
