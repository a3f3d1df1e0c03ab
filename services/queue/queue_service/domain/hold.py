"""Holding an account at Publisher while its queue is paused."""

from dataclasses import dataclass
from hashlib import sha256

from queue_service.domain.account import AccountKey

_LONGEST_ID = 64


class HoldSuperseded(Exception):
    """Publisher knows this newer revision of the hold."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"revision {revision} is newer")
        self.revision = revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The last pause or resumption of a queue. Its revision orders puts and releases that overtake each other."""

    organization_id: str
    social_account_id: str
    revision: int
    in_force: bool
    reason: str = ""
    holder: str = ""

    @property
    def account(self) -> AccountKey:
        return self.organization_id, self.social_account_id

    @property
    def id(self) -> str:
        """One hold per account, whose id tells it from holds that others put."""
        name = f"queue-{self.social_account_id}"
        if len(name) <= _LONGEST_ID:
            return name
        return f"queue-{sha256(self.social_account_id.encode()).hexdigest()[:48]}"
