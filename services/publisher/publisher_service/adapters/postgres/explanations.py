"""Explanations: the checks of a claim on one post job, each with its values, without a lock and without a trace."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Final

from publisher_service.adapters.postgres.checks import CHECKS, Check
from publisher_service.adapters.postgres.claim import UNLOCKED
from publisher_service.adapters.postgres.jobs import LINE_LABELS, STANDS_IN_LINE
from publisher_service.adapters.postgres.limits_as_of import LIMITS_AS_OF, refreshed_limits, stored_limits
from publisher_service.adapters.postgres.looked_at import looked_at_arguments
from publisher_service.adapters.postgres.marks import IN_SAFE_MODE, IS_OLDER, mark_arrays
from publisher_service.domain.claim import Command, Lane, Verdict
from publisher_service.domain.explanation import Beside, Found
from publisher_service.domain.limits import LimitDefaults
from publisher_service.domain.mark import Mark
from publisher_service.domain.post_job import PostJob
from servicekit.pg.session import Row, Session, Statement

# An explanation counts no further: a line may hold a hundred thousand.
MOST_COUNTED: Final = 1000

_SAFE_MODE: Final = "(select {column} from safe_mode where active limit 1)"
# The claim asks these once for all its jobs.
_FIRST: Final = (
    Check(Verdict.OLDER, IS_OLDER, "NEWEST_DATABASE"),
    Check(
        Verdict.SAFE_MODE,
        IN_SAFE_MODE,
        "SAFE_MODE",
        {
            "reason": _SAFE_MODE.format(column="reason"),
            "enter_time": _SAFE_MODE.format(column="enter_time"),
        },
    ),
    Check(Verdict.COMMAND_AHEAD, "t.known_job_version > t.version", "NEWEST_VERSION", {"version": "t.version"}),
)
# No claim is tried before these pass. They come behind the checks that say that the run is over or out.
_BEFORE: Final = (
    # The time of a follow-up comes with what it follows.
    Check(
        Beside.NO_TIME,
        "(job.schedule_time is null or job.not_after is null) and (job.part = 0 or job.follows <> '')",
        "TIME",
        applies="job.part = 0 or job.follows <> ''",
    ),
    Check(
        Beside.NOT_DUE,
        "job.schedule_time > :now",
        "DUE",
        {"schedule_time": "job.schedule_time"},
        applies="job.schedule_time is not null",
        clear_time="job.schedule_time",
    ),
)
_CLOSED_UNTIL: Final = (
    "(select q.closed_until from provider_quota q where q.provider = s.provider and q.closed_until > :now)"
)
# The claim decides this one behind the others, because it depends on all posts of the claim.
_AFTER: Final = (
    Check(
        Verdict.PROVIDER_BUSY,
        "s.id is not null and not exists (select from unnest(cast(:providers as text[]), cast(:rooms as integer[]))"
        " as lane (provider, room) where lane.provider = s.provider and lane.room > 0"
        " and (s.provider, s.organization_id) not in"
        " (select * from unnest(cast(:crowded_providers as text[]), cast(:crowded as text[]))))",
        "PROVIDER_ROOM",
        {"provider": "s.provider", "closed_until": _CLOSED_UNTIL},
        applies="s.id is not null",
        clear_time=_CLOSED_UNTIL,
    ),
)


def _in_order() -> Iterator[Check]:
    yield from _FIRST
    for check in CHECKS:
        yield check
        if check.verdict is Verdict.OPEN:
            yield from _BEFORE
    yield from _AFTER


TRACE: Final = tuple(_in_order())


def _columns(checks: Iterable[Check]) -> Iterator[str]:
    """Yields, for each check, whether it is open, whether it applies, when it clears, and its values."""
    for check in checks:
        yield f"coalesce({check.condition}, false)"
        yield f"coalesce({check.applies}, false)"
        yield check.clear_time
        yield from check.values.values()


# Whether the limits are those of a window or a day that is over.
_STALE_COLUMN: Final = sum(
    3 + len(check.values) for check in takewhile(lambda each: each.verdict is not Verdict.LIMITS_STALE, TRACE)
)

_EXPLAIN: Final = Statement(f"""
    with {LIMITS_AS_OF}
    select {", ".join(f"{column} as c{number}" for number, column in enumerate(_columns(TRACE)))},
        s.credentials
    {UNLOCKED}
    join post_job job on job.organization_id = t.organization_id and job.id = t.id
""")

# Posts in line, and those that come into the line when their time has come, stand in this order.
_POSTS_BEFORE: Final = Statement(f"""
    select least(count(*), {MOST_COUNTED})
    from unnest(cast(:labels as text[])) as shown (label) cross join lateral (
        select from post_job
        where organization_id = :organization_id and social_account_id = :social_account_id
            and state_reason = shown.label and {STANDS_IN_LINE}
            and (schedule_time, id) < (cast(:schedule_time as timestamptz), :id)
        limit {MOST_COUNTED}
    ) as earlier
""")


async def count_posts_before(session: Session, job: PostJob) -> int:
    """Counts the posts in the line of the account that go before the job, up to `MOST_COUNTED`."""
    names = {
        "organization_id": job.organization_id,
        "social_account_id": job.target.social_account_id,
        "labels": list(LINE_LABELS),
        "schedule_time": job.schedule_time,
        "id": job.id,
    }
    count: int = await session.fetch_value(_POSTS_BEFORE, names)
    return count


async def check_job(
    session: Session,
    command: Command,
    lanes: Sequence[Lane],
    *,
    now: datetime,
    from_line: bool,
    posts_before: int,
    marks: Mapping[str, Mark],
    limits: LimitDefaults,
) -> tuple[list[Found], bytes | None]:
    """Returns what each check finds about the job of the command, and the sealed credentials of its account."""
    arguments = {
        **looked_at_arguments([command], lanes, now=now, from_line=from_line, limits=limits),
        **mark_arrays(marks),
        "posts_before": posts_before,
    }
    row = await _checked(session, arguments | stored_limits(command))
    if row[_STALE_COLUMN]:
        row = await _checked(session, arguments | await refreshed_limits(session.connection, command, now=now))
    return list(_found(row)), row.credentials


async def _checked(session: Session, arguments: Mapping[str, object]) -> Row:
    row = await session.fetch_row(_EXPLAIN, arguments)
    assert row is not None, "a post job has a gate"
    return row


def _found(row: Row) -> Iterator[Found]:
    columns = iter(row)
    for check in TRACE:
        yield Found(
            name=check.name,
            verdict=check.verdict,
            is_open=next(columns),
            applies=next(columns),
            clear_time=next(columns),
            values={name: next(columns) for name in check.values},
        )
