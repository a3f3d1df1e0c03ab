"""WithdrawContent: forbids older revisions of a draft unless a target is out; after the answer none of them starts."""

from publisher_service.adapters.postgres.contents import lock_contents, withdraw_below
from publisher_service.adapters.postgres.jobs import lock_jobs_of_drafts
from publisher_service.application.reconciled import require_reconciled
from publisher_service.domain.withdrawal import Withdrawal, require_known, withdrawal_of
from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Database, Transaction

_COMMITTED = declare("publisher.withdraw.committed")


class WithdrawContent:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, organization_id: str, draft_id: str, below_revision: int) -> Withdrawal:
        answer = await self._database.run(lambda tx: self._withdraw(tx, organization_id, draft_id, below_revision))
        await failpoint(_COMMITTED)
        return answer

    async def _withdraw(self, tx: Transaction, organization_id: str, draft_id: str, below: int) -> Withdrawal:
        """Decides under the locks of the content and every job, so no claim, settlement or new job interferes."""
        await require_reconciled(tx)
        key = (organization_id, draft_id)
        known = (await lock_contents(tx.connection, [key]))[key]
        withdrawal = withdrawal_of(await lock_jobs_of_drafts(tx.connection, [key]), below)
        if not withdrawal.published:
            require_known(draft_id, known=known.revision, below=below)
            await withdraw_below(tx.connection, organization_id, draft_id, below)
        return withdrawal
