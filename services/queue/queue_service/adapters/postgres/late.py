"""Statements that find queues with slots that their late policy gives other times."""

from collections.abc import Sequence
from datetime import datetime

from queue_service.adapters.postgres.first_scheduled import FIRST_SCHEDULED
from queue_service.domain.account import AccountKey, DueAccount
from servicekit.pg.database import Transaction
from servicekit.pg.session import Session, Statement

# An account whose slots are all in time is read only if its first one is due: `account_queue_late` has no others.
_FIND = Statement("""
    select due_time, organization_id, social_account_id from account_queue
    where late_action = 'RESLOT' and due_time < :now and due_time >= :after_time
        and (due_time, organization_id, social_account_id)
            > (cast(:after_time as timestamptz), cast(:organization_id as text), cast(:social_account_id as text))
        and due_time + late_grace < :now
    order by due_time, organization_id, social_account_id limit :limit
""")
_CORRECT = Statement(f"""
    update account_queue q set
        next_due_time = ({FIRST_SCHEDULED})
    where q.organization_id = :organization_id and q.social_account_id = :social_account_id
""")


async def find_late(session: Session, after: DueAccount, *, now: datetime, limit: int) -> Sequence[DueAccount]:
    """Returns accounts that are not held up, and whose first slot is due for another time; the latest first."""
    names = {
        "now": now,
        "after_time": after.due_time,
        "organization_id": after.organization_id,
        "social_account_id": after.social_account_id,
        "limit": limit,
    }
    return list(map(DueAccount._make, await session.fetch(_FIND, names)))


async def correct_due_time(tx: Transaction, account: AccountKey) -> None:
    """Sets when the locked account is due, which may be said to be too early: slots have ended unsent."""
    await tx.execute(_CORRECT, {"organization_id": account[0], "social_account_id": account[1]})
