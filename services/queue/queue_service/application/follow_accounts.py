"""Keeping a copy of which accounts can post, as Publisher announces it."""

from collections.abc import Sequence
from datetime import datetime

from queue_service.adapters.postgres.connections import save_connections
from queue_service.domain.account import Connection
from servicekit.pg.database import Transaction
from servicekit.versions import newest


async def follow_accounts(tx: Transaction, announced: Sequence[Connection], _now: datetime) -> None:
    connections = newest(
        announced, key=lambda each: (each.organization_id, each.social_account_id), version=lambda each: each.version
    )
    await save_connections(tx.connection, connections)
