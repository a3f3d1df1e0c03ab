"""Keeping a copy of which accounts can post, as Publisher announces it."""

from collections.abc import Sequence
from datetime import datetime

from queue_service.adapters.postgres.connections import save_connections
from queue_service.domain.account import Connection
from servicekit.pg.database import Transaction


async def follow_accounts(tx: Transaction, announced: Sequence[Connection], _now: datetime) -> None:
    newest: dict[tuple[str, str], Connection] = {}
    for each in announced:
        key = (each.organization_id, each.social_account_id)
        if key not in newest or newest[key].version < each.version:
            newest[key] = each
    await save_connections(tx.connection, newest.values())
