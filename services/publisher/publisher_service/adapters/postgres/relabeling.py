"""Relabeling: posts in the line of an account show why it does not move, and are corrected in pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import JOB_COLUMNS, LINE_LABELS, job_from
from publisher_service.domain.post_job import PostJob, Reason
from servicekit.pg.session import Session, Statement

IS_ONE_RELABELED: Final = "exists (select from account_gate where relabel)"
_IS_ONE_RELABELED = Statement(f"select {IS_ONE_RELABELED}")

# A key-share lock admits other pages and claims, which change no key: the line moves on while it is relabeled.
_FIND_RELABELED = text("""
    select organization_id, social_account_id, connected, frozen, held, enabled from account_gate where relabel
    limit 1 for key share skip locked
""")

# The label is part of the text: a parameter would need the condition of the index beside it, and with that the index
# looks more expensive than one that reads the whole line.
_MISLABELED = """
    from post_job
    where organization_id = :organization_id and social_account_id = :id and state_reason = '{label}'
        and state in ('READY', 'BLOCKED', 'WAITING') and not_after is not null
"""

# From the end of the line, so that its first post is free to go out.
_LOCK_MISLABELED = {
    label: text(f"""
        select {JOB_COLUMNS} {_MISLABELED.format(label=label)}
        order by schedule_time desc, id desc limit :limit for update skip locked
    """)
    for label in LINE_LABELS
}

# Skips a locked gate: two pages that waited for each other would deadlock.
_LOCK_GATE = text("""
    select 1 from account_gate where organization_id = :organization_id and social_account_id = :id
    for update skip locked
""")

_IS_ONE_MISLABELED = {label: text(f"select exists (select {_MISLABELED.format(label=label)})") for label in LINE_LABELS}

_RELABELED = text("""
    update account_gate set relabel = false
    where organization_id = :organization_id and social_account_id = :id and connected = :connected and frozen = :frozen
        and held = :held and enabled = :enabled
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabeled:
    """An account that was connected, disconnected, held or released, and whose waiting posts do not show it yet."""

    organization_id: str
    account_id: str
    connected: bool
    # The verdict under which the line stands still.
    frozen: str = ""
    held: bool = False
    enabled: bool = True

    @property
    def label(self) -> str:
        """The reason that its posts are to show: the one that the claim would give them."""
        if not self.connected:
            return Reason.ACCOUNT_NOT_CONNECTED
        if self.frozen:
            return self.frozen
        if self.held:
            return Reason.ACCOUNT_ON_HOLD
        return Reason.IN_LINE if self.enabled else Reason.ACCOUNT_DISABLED

    @property
    def wrong_labels(self) -> Sequence[str]:
        right = {self.label}
        if self.label == Reason.IN_LINE:
            # A window opens and closes daily: its posts keep their label while the line moves past them.
            right.add(Reason.SEND_WINDOW)
        return [label for label in LINE_LABELS if label not in right]


async def is_one_relabeled(session: Session) -> bool:
    found: bool = await session.fetch_value(_IS_ONE_RELABELED)
    return found


async def find_relabeled(connection: AsyncConnection) -> Relabeled | None:
    """Returns an account to relabel, locked so that no other process ends the relabeling meanwhile."""
    row = (await connection.execute(_FIND_RELABELED)).one_or_none()
    if row is None:
        return None
    return Relabeled(
        organization_id=row.organization_id,
        account_id=row.social_account_id,
        connected=row.connected,
        frozen=row.frozen,
        held=row.held,
        enabled=row.enabled,
    )


async def lock_mislabeled_jobs(connection: AsyncConnection, account: Relabeled, *, limit: int) -> list[PostJob]:
    """Locks the last posts of the line that show a wrong reason, the same for all, skipping those that are locked."""
    names = {"organization_id": account.organization_id, "id": account.account_id, "limit": limit}
    for label in account.wrong_labels:
        if rows := (await connection.execute(_LOCK_MISLABELED[label], names)).all():
            return [job_from(row) for row in rows]
    return []


async def end_relabeling(connection: AsyncConnection, account: Relabeled) -> bool:
    """Ends the relabeling if every post of the line shows the right reason. Returns whether it has ended."""
    names = {"organization_id": account.organization_id, "id": account.account_id}
    if (await connection.execute(_LOCK_GATE, names)).one_or_none() is None:
        return False
    # Separate statements: their snapshots are younger than the lock, so they see what every page has committed.
    for label in account.wrong_labels:
        if (await connection.execute(_IS_ONE_MISLABELED[label], names)).scalar_one():
            return False
    facts = {
        "connected": account.connected,
        "frozen": account.frozen,
        "held": account.held,
        "enabled": account.enabled,
    }
    return (await connection.execute(_RELABELED, names | facts)).rowcount == 1
