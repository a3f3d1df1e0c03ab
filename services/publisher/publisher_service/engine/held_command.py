"""A command that this process holds, and the reply that the stream gets for it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from publisher_service.domain.claim import Claimed, Command
from servicekit.bus.delivery import Delivery

CommandKey = tuple[str, str, int]
"""Post job, slot, revision of the slot: copies of a command have the same."""


@dataclass(slots=True, eq=False, kw_only=True)
class HeldCommand:
    """A command without a delivery comes from the database; no reply is due for it."""

    command: Command
    since: float
    delivery: Delivery | None = None
    on_release: "Callable[[HeldCommand], None] | None" = None
    claim_started: float = 0.0
    claimed: Claimed | None = None
    # Its claim has begun: a copy can no longer be merged into it.
    is_being_claimed: bool = False
    # Its attempt has been announced as started.
    is_announced: bool = False

    @property
    def account(self) -> tuple[str, str]:
        return self.command.organization_id, self.command.target.social_account_id

    @property
    def key(self) -> CommandKey:
        command = self.command
        return command.post_job_id, command.slot_id, command.slot_revision

    async def done(self) -> None:
        """Acknowledges the command: the database knows how its job goes on."""
        if self.delivery is not None:
            await self.delivery.ack()
        self._release()

    async def retry_in(self, delay: timedelta) -> None:
        """Returns the command to the stream for `delay`. One from the database is found again by a later sweep."""
        if self.delivery is not None:
            await self.delivery.retry_in(delay)
        self._release()

    def _release(self) -> None:
        if self.on_release is not None:
            self.on_release(self)
