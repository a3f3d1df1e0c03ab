"""The facts of media, by organization and the digest of the URL."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from channels.validation import MediaKind
from publisher_service.domain.media import Inspected, MediaFacts, MediaProblem

_FACTS = tuple(field.name for field in fields(MediaFacts))
_COLUMNS = (
    "organization_id",
    "url_digest",
    "shown_url",
    *_FACTS,
    "error_reason",
    "error_message",
    "fetch_time",
)

_FIND = text(f"""
    select {", ".join(_FACTS)}, url_digest, error_reason, error_message from media
    where organization_id = :organization_id and url_digest = any(cast(:digests as bytea[]))
        and fetch_time > case
            when error_reason = '' then cast(:facts_since as timestamptz) else :problems_since
        end
        -- A newer release may know more kinds.
        and (error_reason <> '' or kind = any(cast(:kinds as text[])))
""")
_SAVE = text(f"""
    insert into media as m ({", ".join(_COLUMNS)}) values ({", ".join(f":{name}" for name in _COLUMNS)})
    on conflict (organization_id, url_digest) do update set
        {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[2:])}
    where m.fetch_time <= excluded.fetch_time
""")
_DROP = text("""
    delete from media where ctid = any(array(
        select ctid from media where fetch_time < :before order by fetch_time limit :limit for update skip locked
    ))
""")
# The facts of a file that was refused.
_NONE = dict.fromkeys(_FACTS) | dict.fromkeys(("kind", "content_type", "sha256"), "")
_NONE |= {"size": 0, "width": 0, "height": 0, "page_count": 0, "is_animated": False, "is_mislabeled": False}


async def find_media(
    connection: AsyncConnection,
    organization_id: str,
    digests: Sequence[bytes],
    *,
    facts_since: datetime,
    problems_since: datetime,
) -> Mapping[bytes, Inspected]:
    """Returns what was found out since then, by the digest of the URL."""
    names = {
        "organization_id": organization_id,
        "digests": list(digests),
        "facts_since": facts_since,
        "problems_since": problems_since,
        "kinds": [kind.value for kind in MediaKind],
    }
    rows = await connection.execute(_FIND, names)
    return {bytes(row.url_digest): _inspected(row) for row in rows}


async def save_media(
    connection: AsyncConnection,
    organization_id: str,
    digest: bytes,
    inspected: Inspected,
    *,
    shown_url: str,
    now: datetime,
) -> None:
    """Writes what was just found out, unless something newer is known."""
    facts = _NONE if isinstance(inspected, MediaProblem) else asdict(inspected)
    problem = inspected if isinstance(inspected, MediaProblem) else None
    row = facts | {
        "organization_id": organization_id,
        "url_digest": digest,
        "shown_url": shown_url,
        "error_reason": problem.reason if problem else "",
        "error_message": problem.message if problem else "",
        "fetch_time": now,
    }
    await connection.execute(_SAVE, row)


async def drop_media(connection: AsyncConnection, *, before: datetime, limit: int) -> int:
    """Deletes what was not fetched since then. Returns the number of rows."""
    return (await connection.execute(_DROP, {"before": before, "limit": limit})).rowcount


def _inspected(row: Row[Any]) -> Inspected:
    if row.error_reason:
        return MediaProblem(reason=row.error_reason, message=row.error_message, is_transient=False)
    return MediaFacts(**{name: getattr(row, name) for name in _FACTS} | {"kind": MediaKind(row.kind)})
