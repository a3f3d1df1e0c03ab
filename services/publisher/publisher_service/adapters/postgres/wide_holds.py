"""Holds that cover more than an account: no gate says that they are in force, so claims look for them.

A lock of its own keeps the two apart. Every claim shares it, from before the snapshot of its statement until it is
committed; who puts or releases such a hold has it alone. So each claim either is committed, and its posts are in the
answer, or sees the hold.
"""

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.domain.hold import Hold, Scope
from publisher_service.domain.post_job import PostJob, Reason
from servicekit.pg.session import Session, Statement

# The time is read in the same round trip, so that the lock costs a claim a microsecond.
_SHARE = Statement("select pg_advisory_xact_lock_shared(hashtext('wide holds')), clock_timestamp()")
_LOCK = text("select pg_advisory_xact_lock(hashtext('wide holds'))")
_WAIT = text("select set_config('lock_timeout', :milliseconds, true)")

# What is being sent, or may yet be, is named by its claim; all else that may be out is in doubt, and has an index of
# its own. A post that is out is in flight, too, if a later attempt of it is open: late proof has ended the job, and the
# process of that attempt may still begin.
_IN_FLIGHT = """
    with flying (id) as (
        select one.job_id
        from open_claim c
        cross join lateral unnest(c.organization_ids, c.post_job_ids) as one (of_organization, job_id)
        -- Lateral with a limit, so that each is found by key.
        cross join lateral (
            select j.social_account_id, j.brand_id, j.campaign_id, j.state, j.fence from post_job j
            where j.organization_id = :organization_id and j.id = one.job_id and j.state in ('SENDING', 'PUBLISHED')
            limit 1
        ) as j
        where one.of_organization = :organization_id and {covered} and (j.state = 'SENDING' or (
            c.lease_end > :now and exists (
                select from attempt a
                where a.organization_id = :organization_id and a.post_job_id = one.job_id and a.fence = j.fence
                    and a.state = 'ABANDONED'
            )
        ))
        union
        select j.id from post_job j where j.organization_id = :organization_id and j.in_doubt and {covered}
    )
    select id, count(*) over () as all_of_them from flying order by id limit :limit
"""
_COVERED = {
    Scope.ORGANIZATION: "true",
    Scope.BRAND: "j.brand_id = :scope_id",
    Scope.CAMPAIGN: "j.campaign_id = :scope_id",
    Scope.PROVIDER: """:scope_id = (
        select s.provider from social_account s
        where s.organization_id = :organization_id and s.id = j.social_account_id
    )""",
}
_IN_FLIGHT_OF = {scope: text(_IN_FLIGHT.format(covered=covered)) for scope, covered in _COVERED.items()}

# The order is that of the claim's checks.
_COVERING = Statement("""
    select case
        when exists (
            select from hold where organization_id = :organization_id and scope = 'ORGANIZATION' and scope_id = ''
                and in_force
        ) then 'ORGANIZATION_ON_HOLD'
        when exists (
            select from hold where organization_id = :organization_id and scope = 'PROVIDER' and scope_id = :provider
                and in_force
        ) then 'PROVIDER_ON_HOLD'
        when exists (
            select from account_gate
            where organization_id = :organization_id and social_account_id = :account_id and held
        ) then 'ACCOUNT_ON_HOLD'
        when exists (
            select from hold where organization_id = :organization_id and scope = 'BRAND' and scope_id = :brand_id
                and in_force
        ) then 'BRAND_ON_HOLD'
        when exists (
            select from hold where organization_id = :organization_id and scope = 'CAMPAIGN'
                and scope_id = :campaign_id and in_force
        ) then 'CAMPAIGN_ON_HOLD'
    end
""")

# New claims wait behind who waits for the lock. A process that stands still within a claim must not stop all others.
_PATIENCE = timedelta(seconds=1)


async def share_wide_holds(session: Session) -> tuple[datetime, None]:
    """Keeps holds from being put and released until the transaction ends. Returns the database's time.

    What a later statement of the transaction reads of them stays true until then.
    """
    row = await session.fetch_row(_SHARE)
    assert row is not None
    return row[1], None


async def lock_wide_holds(connection: AsyncConnection) -> None:
    """Waits until all claims have ended that may not see what this transaction writes, and stops new ones."""
    await connection.execute(_WAIT, {"milliseconds": str(int(_PATIENCE.total_seconds() * 1000))})
    await connection.execute(_LOCK)


async def covering_hold(session: Session, job: PostJob, provider: str) -> Reason | None:
    """Returns why a post that was claimed may not start; None if no hold covers it."""
    names = {
        "organization_id": job.organization_id,
        "provider": provider,
        "account_id": job.target.social_account_id,
        "brand_id": job.brand_id,
        "campaign_id": job.campaign_id,
    }
    found = await session.fetch_value(_COVERING, names)
    return None if found is None else Reason(found)


async def wide_in_flight(
    connection: AsyncConnection, hold: Hold, *, now: datetime, limit: int
) -> tuple[tuple[str, ...], int]:
    """Returns the post jobs that the hold covers and that are being sent or may be out: the first, and how many."""
    names = {"organization_id": hold.organization_id, "now": now, "limit": limit}
    if hold.scope != Scope.ORGANIZATION:
        names["scope_id"] = hold.scope_id
    found = (await connection.execute(_IN_FLIGHT_OF[Scope(hold.scope)], names)).all()
    return tuple(row.id for row in found), found[0].all_of_them if found else 0
