"""Drafts as far as Queue needs them: their targets."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from queue_service.domain.slot import DRAFT_PUBLISHED, BlockingSlot
from servicekit.faults import Refused
from servicekit.record import record

DraftKey: TypeAlias = tuple[str, str]
"""An organization and one of its drafts."""


@record(frozen=True, slots=True, kw_only=True)
class Target:
    social_account_id: str
    channel: str
    destination: str


@record(frozen=True, slots=True, kw_only=True)
class Draft:
    organization_id: str
    id: str
    revision: int
    targets: tuple[Target, ...]
    category_id: str = ""

    @property
    def key(self) -> DraftKey:
        return self.organization_id, self.id

    @property
    def account_ids(self) -> frozenset[str]:
        return frozenset(target.social_account_id for target in self.targets)

    def targets_on(self, social_account_id: str) -> tuple[Target, ...]:
        return tuple(target for target in self.targets if target.social_account_id == social_account_id)

    def has_all(self, accounts: Sequence[str]) -> bool:
        return self.account_ids.issuperset(accounts)

    def without(self, targets: Collection[Target]) -> "Draft":
        if not targets:
            return self
        return replace(self, targets=tuple(target for target in self.targets if target not in targets))

    def accounts(self, asked: Sequence[str]) -> tuple[str, ...]:
        """Returns the accounts asked for, without duplicates; if none are given, all accounts of the draft, sorted."""
        known = self.account_ids
        if not known:
            raise Refused("ACCOUNT_NOT_A_TARGET", "the draft has no targets", metadata={"draft_id": self.id})
        for account in asked:
            if account not in known:
                raise Refused(
                    "ACCOUNT_NOT_A_TARGET",
                    f"account {account} is not among the targets of the draft",
                    metadata={"social_account_id": account, "draft_id": self.id},
                )
        return tuple(dict.fromkeys(asked)) or tuple(sorted(known))


@record(frozen=True, slots=True, kw_only=True)
class KnownDraft:
    """A draft with those of its accounts of which Queue knows that they are connected."""

    draft: Draft
    connected: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTarget:
    """A target that has been sent."""

    target: Target
    job_id: str
    external_url: str


@record(frozen=True, slots=True, kw_only=True)
class LockedDraft:
    """A draft as Queue knows it, with its live slots and the targets that have been sent, in the order of accounts."""

    draft: Draft
    live: tuple[BlockingSlot, ...] = ()
    published: tuple[PublishedTarget, ...] = ()

    def unpublished(self, read: Draft, accounts: Sequence[str]) -> Draft:
        """Returns the newer of the two drafts with the targets that are still to be sent on the accounts.

        Refuses an account that needs no slot. `read` is the draft as it was read before the lock.
        """
        for slot in self.live:
            if slot.social_account_id in accounts:
                raise Refused(
                    "ALREADY_QUEUED",
                    f"the draft already has a slot on account {slot.social_account_id}",
                    metadata=slot.metadata,
                )
        draft = self.draft if self.draft.revision > read.revision else read
        draft.accounts(accounts)
        published = [each for each in self.published if each.target.social_account_id in accounts]
        unpublished = draft.without({each.target for each in published})
        for each in published:
            if not unpublished.targets_on(each.target.social_account_id):
                raise _is_published(draft, each)
        return unpublished

    def with_slots(self, added: Iterable[BlockingSlot]) -> "LockedDraft":
        live = sorted((*self.live, *added), key=lambda slot: slot.social_account_id)
        return LockedDraft(draft=self.draft, live=tuple(live), published=self.published)

    def with_published(self, target: PublishedTarget) -> "LockedDraft":
        return replace(self, published=(*self.published, target))


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDraft:
    """A draft as Drafts has announced it."""

    draft: Draft
    version: int
    is_approved: bool = False
    # The time that the draft asks for.
    requested_time: datetime | None = None


def _is_published(draft: Draft, sent: PublishedTarget) -> Refused:
    account = sent.target.social_account_id
    return Refused(
        DRAFT_PUBLISHED,
        f"all targets of the draft on account {account} have been published",
        metadata={
            "draft_id": draft.id,
            "social_account_id": account,
            "post_job_id": sent.job_id,
            "external_url": sent.external_url,
        },
    )
