"""What drafts need of Publisher."""

from typing import Protocol


class Publisher(Protocol):
    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> list[str]:
        """Forbids the draft's revisions below this one: once it has returned, none of them starts.

        Returns the post jobs that had started with one. Raises Unavailable when there is no answer.
        """
        ...
