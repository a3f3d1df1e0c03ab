"""Relabeling: posts in the line of an account show whether the account is connected, and are corrected in pages."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import JOB_COLUMNS, job_from
from publisher_service.domain.post_job import PostJob, Reason
from servicekit.pg.session import Session, Statement

_IS_ONE_RELABELED = Statement("select exists (select from account_gate where relabel)")

# A key-share lock admits other pages and claims, which change no key: the line moves on while it is relabeled.
_FIND_RELABELED = text("""
    select organization_id, social_account_id, connected from account_gate where relabel
    limit 1 for key share skip locked
""")

# From the end of the line, so that its first post is free to go out.
_LOCK_MISLABELED = text(f"""
    select {JOB_COLUMNS} from post_job
    where organization_id = :organization_id and social_account_id = :id and state_reason = :label
        and state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED') and state in ('READY', 'BLOCKED')
        and not_after is not null
    order by schedule_time desc, id desc limit :limit for update skip locked
""")

# Skips a locked gate: two pages that waited for each other would deadlock.
_LOCK_GATE = text("""
    select 1 from account_gate where organization_id = :organization_id and social_account_id = :id
    for update skip locked
""")

_RELABELED = text("""
    update account_gate g set relabel = false
    where g.organization_id = :organization_id and g.social_account_id = :id and g.connected = :connected
        and not exists (
            select from post_job j
            where j.organization_id = :organization_id and j.social_account_id = :id and j.state_reason = :label
                and j.state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED') and j.state in ('READY', 'BLOCKED')
                and j.not_after is not null
        )
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabeled:
    """An account that was connected or disconnected, and whose waiting posts do not show it yet."""

    organization_id: str
    account_id: str
    connected: bool

    @property
    def label(self) -> str:
        """The reason that its posts still show."""
        return Reason.ACCOUNT_NOT_CONNECTED if self.connected else Reason.IN_LINE


async def is_one_relabeled(session: Session) -> bool:
    found: bool = await session.fetch_value(_IS_ONE_RELABELED)
    return found


async def find_relabeled(connection: AsyncConnection) -> Relabeled | None:
    """Returns an account to relabel, locked so that no other process ends the relabeling meanwhile."""
    row = (await connection.execute(_FIND_RELABELED)).one_or_none()
    if row is None:
        return None
    return Relabeled(organization_id=row.organization_id, account_id=row.social_account_id, connected=row.connected)


async def lock_mislabeled_jobs(connection: AsyncConnection, account: Relabeled, *, limit: int) -> list[PostJob]:
    """Locks the last posts of the line that show the old reason, skipping those that are locked."""
    names = {"organization_id": account.organization_id, "id": account.account_id, "label": account.label}
    return [job_from(row) for row in await connection.execute(_LOCK_MISLABELED, names | {"limit": limit})]


async def end_relabeling(connection: AsyncConnection, account: Relabeled) -> bool:
    """Ends the relabeling if every post of the line shows the right reason. Returns whether it has ended."""
    names = {"organization_id": account.organization_id, "id": account.account_id}
    if (await connection.execute(_LOCK_GATE, names)).one_or_none() is None:
        return False
    # A separate statement: its snapshot is younger than the lock, so it sees what every page has committed.
    more = {"connected": account.connected, "label": account.label}
    return (await connection.execute(_RELABELED, names | more)).rowcount == 1
