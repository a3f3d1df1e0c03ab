"""Drafts as far as Queue needs them: their targets."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from queue_service.domain.slot import DRAFT_PUBLISHED, BlockingSlot
from servicekit.faults import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    social_account_id: str
    channel: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    organization_id: str
    id: str
    revision: int
    targets: tuple[Target, ...]

    def targets_on(self, social_account_id: str) -> tuple[Target, ...]:
        return tuple(target for target in self.targets if target.social_account_id == social_account_id)

    def has_all(self, accounts: Sequence[str]) -> bool:
        return {target.social_account_id for target in self.targets}.issuperset(accounts)

    def without(self, targets: Collection[Target]) -> "Draft":
        return replace(self, targets=tuple(target for target in self.targets if target not in targets))

    def accounts(self, asked: Sequence[str]) -> tuple[str, ...]:
        """Returns the accounts asked for, without duplicates; if none are given, all accounts of the draft, sorted."""
        known = {target.social_account_id for target in self.targets}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTarget:
    """A target that has been sent."""

    target: Target
    job_id: str
    external_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedDraft:
    """A draft with its newest targets, and its slots on the accounts of a call."""

    draft: Draft
    # A live slot of the draft on one of the accounts, if there is one.
    queued: BlockingSlot | None
    published: tuple[PublishedTarget, ...]

    def unpublished(self, accounts: Sequence[str]) -> Draft:
        """Returns the draft with the targets still to be sent. Refuses an account that needs no slot."""
        if self.queued:
            raise Refused(
                "ALREADY_QUEUED",
                f"the draft already has a slot on account {self.queued.social_account_id}",
                metadata=self.queued.metadata,
            )
        self.draft.accounts(accounts)
        unpublished = self.draft.without({each.target for each in self.published})
        for each in self.published:
            if not unpublished.targets_on(each.target.social_account_id):
                raise self._is_published(each)
        return unpublished

    def _is_published(self, sent: PublishedTarget) -> Refused:
        account = sent.target.social_account_id
        return Refused(
            DRAFT_PUBLISHED,
            f"all targets of the draft on account {account} have been published",
            metadata={
                "draft_id": self.draft.id,
                "social_account_id": account,
                "post_job_id": sent.job_id,
                "external_url": sent.external_url,
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDraft:
    """A draft as Drafts has announced it."""

    draft: Draft
    version: int
