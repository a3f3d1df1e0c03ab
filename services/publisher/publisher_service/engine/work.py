"""One command on its way through this process, and the answer that the stream gets for it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.post_job import Target
from servicekit.bus.delivery import Delivery

Wish = tuple[str, str, int, Target]


@dataclass(slots=True, eq=False, kw_only=True)
class Work:
    """Without a delivery it comes from the database, and nobody waits for an answer."""

    command: Command
    since: float
    delivery: Delivery | None = None
    left: "Callable[[Work], None] | None" = None
    claim_started: float = 0.0
    claimed: Claimed | None = None
    # It is being claimed, or was.
    is_taken: bool = False
    told: bool = False

    @property
    def account(self) -> tuple[str, str]:
        return self.command.organization_id, self.command.target.social_account_id

    @property
    def wish(self) -> "Wish":
        """What is asked for; copies of a command ask for the same."""
        command = self.command
        return command.organization_id, command.slot_id, command.slot_revision, command.target

    async def over(self) -> None:
        """The database knows how it goes on; the command has done its service."""
        if self.delivery is not None:
            await self.delivery.ack()
        self._leave()

    async def again(self, delay: timedelta) -> None:
        """The stream holds it and brings it back; the sweep, when it came from the database."""
        if self.delivery is not None:
            await self.delivery.retry_in(delay)
        self._leave()

    def _leave(self) -> None:
        if self.left is not None:
            self.left(self)
