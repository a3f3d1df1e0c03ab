"""Visits to providers that were begun, by the digest of their state."""

import hashlib
import json
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key
from publisher_service.domain.connecting import Session, SessionState, WantedSession

_WANTED = ("organization_id", "provider", "redirect_uri", "display_name")
_NAMES = f"{', '.join(_WANTED)}, social_account_id, channels, settings, state, expire_time, exchange_end, sealed"

_ADD = text(f"""
    insert into connect_session (state_digest, {_NAMES})
    values (:state_digest, {", ".join(f":{name}" for name in _WANTED)}, :social_account_id, :channels,
        cast(:settings as jsonb), :state, :expire_time, :exchange_end, :sealed)
""")
_LOCK = text(f"""
    select {_NAMES} from connect_session
    where organization_id = :organization_id and state_digest = :state_digest for update
""")
_SAVE = text("""
    update connect_session set state = :state, exchange_end = :exchange_end, sealed = :sealed
    where organization_id = :organization_id and state_digest = :state_digest
""")
_DELETE_OF_ACCOUNT = text("""
    delete from connect_session where organization_id = :organization_id and social_account_id = :id
""")
_DROP = text("""
    with over as materialized (
        select organization_id, state_digest from connect_session
        where expire_time < :before limit :limit for update skip locked
    )
    delete from connect_session s using over
    where s.organization_id = over.organization_id and s.state_digest = over.state_digest
""")


def state_digest(state: str) -> bytes:
    return hashlib.sha256(state.encode()).digest()


async def add_session(connection: AsyncConnection, digest: bytes, session: Session) -> None:
    wanted = session.wanted
    names = {name: getattr(wanted, name) for name in _WANTED} | {
        "social_account_id": wanted.account_id,
        "channels": list(wanted.channels),
        "settings": json.dumps(dict(wanted.settings)),
    }
    await connection.execute(_ADD, names | _progress(digest, session) | {"expire_time": session.expire_time})


async def lock_session(connection: AsyncConnection, organization_id: str, digest: bytes) -> Session | None:
    names = {"organization_id": organization_id, "state_digest": digest}
    row = (await connection.execute(_LOCK, names)).one_or_none()
    if row is None:
        return None
    wanted = WantedSession(
        **{name: getattr(row, name) for name in _WANTED},
        account_id=row.social_account_id,
        channels=tuple(row.channels),
        settings=row.settings,
    )
    return Session(
        wanted=wanted,
        state=SessionState(row.state),
        expire_time=row.expire_time,
        exchange_end=row.exchange_end,
        sealed=row.sealed,
    )


async def save_session(connection: AsyncConnection, digest: bytes, session: Session) -> None:
    """Writes how far a visit is that this transaction has locked."""
    await connection.execute(_SAVE, _progress(digest, session))


async def delete_sessions(connection: AsyncConnection, account: Key) -> None:
    """Deletes the visits that were to connect this account again."""
    await connection.execute(_DELETE_OF_ACCOUNT, {"organization_id": account[0], "id": account[1]})


async def drop_sessions(connection: AsyncConnection, *, before: datetime, limit: int) -> int:
    """Deletes visits that ended before. Returns their number."""
    return (await connection.execute(_DROP, {"before": before, "limit": limit})).rowcount


def _progress(digest: bytes, session: Session) -> dict[str, Any]:
    return {
        "organization_id": session.wanted.organization_id,
        "state_digest": digest,
        "state": session.state,
        "exchange_end": session.exchange_end,
        "sealed": session.sealed,
    }
