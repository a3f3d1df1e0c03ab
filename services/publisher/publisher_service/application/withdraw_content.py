"""Forbids older texts of a draft: after the answer none starts any more."""

from publisher_service.adapters.postgres import store
from servicekit.pg.database import Database, Transaction


class WithdrawContent:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, organization_id: str, draft_id: str, below_revision: int) -> list[str]:
        """The post jobs whose older text had already started."""

        async def withdraw(tx: Transaction) -> list[str]:
            # The row may not exist yet: what forbids must be there before what it forbids arrives.
            await store.lock_contents(tx.connection, [(organization_id, draft_id)])
            return await store.withdraw(tx.connection, organization_id, draft_id, below_revision)

        return await self._database.run(withdraw)
