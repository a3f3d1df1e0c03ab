"""The SQL of drafts as callers see them: with the states of their jobs and of their accounts."""

from collections.abc import Collection, Sequence

from drafts_service.adapters.postgres.drafts import COLUMNS, draft_of, key_arrays
from drafts_service.adapters.postgres.post_jobs import job_of
from drafts_service.domain.draft import DraftKey, DraftView
from servicekit.pg.session import Row, Session, Statement

# One statement for drafts and jobs: a second one would cost a round trip, and could see later jobs than the draft's
# state is folded from. The jobs are arrays, so that the content is not repeated for each of them.
# LATERAL with OFFSET 0, or with an aggregate: see the plans in `drafts`.
_FIND = Statement(f"""
    select here.*, jobs.*
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    cross join lateral (
        select {COLUMNS}
        from draft
        where draft.organization_id = wanted.organization_id and draft.id = wanted.id offset 0
    ) as here
    cross join lateral (
        select array_agg(job.id) as ids, array_agg(job.version) as versions, array_agg(job.social_account_id),
            array_agg(job.channel), array_agg(job.destination), array_agg(job.state), array_agg(job.state_reason),
            array_agg(job.schedule_time), array_agg(job.publish_time), array_agg(job.external_url),
            array_agg(job.error_message), array_agg(job.part)
        from post_job as job
        where job.organization_id = wanted.organization_id and job.draft_id = wanted.id
    ) as jobs
""")
_DRAFT_COLUMNS = 24


async def find_views(session: Session, keys: Collection[DraftKey]) -> dict[DraftKey, DraftView]:
    """Returns those of the drafts that exist."""
    return {(row[0], row[1]): _view(row) for row in await session.fetch(_FIND, key_arrays(set(keys)))}


def _view(row: Row) -> DraftView:
    organization_id, draft_id = row[0], row[1]
    arrays: Sequence[Sequence[object]] = row[_DRAFT_COLUMNS:] if row[_DRAFT_COLUMNS] else ()
    jobs = [job_of((organization_id, draft_id, *columns)) for columns in zip(*arrays, strict=True)]
    return DraftView(draft=draft_of(row[:_DRAFT_COLUMNS]), jobs=jobs)
