"""What Queue needs of a draft: where it goes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

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
        """The accounts asked for, each once and in that order; all of the draft's, by their ids, when none is."""
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
    """A target that is out."""

    target: Target
    job_id: str
    external_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDraft:
    """A draft as Drafts has announced it."""

    draft: Draft
    version: int
    approved: bool
