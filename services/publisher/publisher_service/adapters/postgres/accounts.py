"""Social accounts and their sealed credentials."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.account_caps import CAPS, caps_from, caps_of
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.account import AccountFilter, SocialAccount
from servicekit.pg.session import Session, Statement

_COLUMNS = (
    "organization_id",
    "id",
    "provider",
    "external_account_id",
    "display_name",
    "channels",
    "state",
    "state_reason",
    "error_message",
    "disconnect_time",
    "version",
    "create_time",
    "update_time",
)
_ACCOUNT = ", ".join(_COLUMNS)
# These never change.
_FIXED = ("organization_id", "id", "provider", "create_time")

# Waits for a concurrent insert of the same account; the second one inserts nothing.
_INSERT = text(f"""
    insert into social_account ({_ACCOUNT}, credentials)
    values ({", ".join(f":{name}" for name in _COLUMNS)}, :credentials)
    on conflict (organization_id, id) do nothing
    returning id
""")
_GET = text(f"select {_ACCOUNT}, {CAPS} from social_account where organization_id = :organization_id and id = :id")
_LOCK = text(f"""
    select {_ACCOUNT} from social_account where organization_id = :organization_id and id = :id for update
""")
_PAGE = f"""
    select {_ACCOUNT}, {CAPS.replace("{}", "{{}}")} from social_account
    where organization_id = :organization_id and id > :after {{conditions}} order by id limit :limit
"""
_SAVE = text(f"""
    update social_account set {", ".join(f"{name} = :{name}" for name in _COLUMNS if name not in _FIXED)}
    where organization_id = :organization_id and id = :id
""")
_SET_CREDENTIALS = text("""
    update social_account set credentials = :credentials where organization_id = :organization_id and id = :id
""")
_CREDENTIALS = text("""
    select provider, external_account_id, credentials from social_account
    where organization_id = :organization_id and id = :id
""")

_IS_CONNECTED_WITH = Statement("""
    select g.connected and s.credentials = cast(:credentials as bytea)
    from account_gate g
    join social_account s on s.organization_id = g.organization_id and s.id = g.social_account_id
    where g.organization_id = :organization_id and g.social_account_id = :id
""")
_PROVIDERS = text("""
    select s.organization_id, s.id, s.provider
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    join social_account s on s.organization_id = wanted.organization_id and s.id = wanted.id
""")
_SEALED_PAGE = text("""
    select organization_id, id, credentials from social_account
    where (organization_id, id) > (:organization_id, :id) order by organization_id, id limit :limit
""")
_RESEAL = text("""
    update social_account set credentials = :sealed
    where organization_id = :organization_id and id = :id and credentials = :credentials
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """The credentials of an account as they are stored."""

    organization_id: str
    id: str
    credentials: bytes


async def insert_account(connection: AsyncConnection, account: SocialAccount, credentials: bytes) -> bool:
    """Returns False if the account exists already; its row is then committed."""
    result = await connection.execute(_INSERT, _values(account) | {"credentials": credentials})
    return result.one_or_none() is not None


async def get_account(connection: AsyncConnection, organization_id: str, account_id: str) -> SocialAccount | None:
    row = (await connection.execute(_GET, {"organization_id": organization_id, "id": account_id})).one_or_none()
    return None if row is None else _account(row)


async def lock_account(connection: AsyncConnection, organization_id: str, account_id: str) -> SocialAccount | None:
    row = (await connection.execute(_LOCK, {"organization_id": organization_id, "id": account_id})).one_or_none()
    if row is None:
        return None
    # A separate statement: its snapshot is younger than the lock.
    return replace(_account(row), daily_caps=await caps_of(connection, (organization_id, account_id)))


async def list_accounts(
    connection: AsyncConnection, wanted: AccountFilter, *, after: str, limit: int
) -> list[SocialAccount]:
    """Lists the accounts behind the id `after`, by id."""
    conditions = ""
    names: dict[str, Any] = {"organization_id": wanted.organization_id, "after": after, "limit": limit}
    if wanted.states:
        conditions += " and state = any(cast(:states as text[]))"
        names["states"] = sorted(state.value for state in set(wanted.states))
    if wanted.provider:
        conditions += " and provider = :provider"
        names["provider"] = wanted.provider
    return [_account(row) for row in await connection.execute(text(_PAGE.format(conditions=conditions)), names)]


async def save_account(connection: AsyncConnection, account: SocialAccount, credentials: bytes | None = None) -> None:
    """Writes an account that this transaction has locked; None leaves the credentials as they are."""
    await connection.execute(_SAVE, _values(account))
    if credentials is not None:
        names = {"organization_id": account.organization_id, "id": account.id, "credentials": credentials}
        await connection.execute(_SET_CREDENTIALS, names)


async def credentials_of(connection: AsyncConnection, organization_id: str, account_id: str) -> tuple[str, str, bytes]:
    """Returns the provider, the account's name there, and the sealed credentials; all empty without the account."""
    names = {"organization_id": organization_id, "id": account_id}
    row = (await connection.execute(_CREDENTIALS, names)).one_or_none()
    return ("", "", b"") if row is None else (row.provider, row.external_account_id, row.credentials)


async def is_connected_with(session: Session, account: Key, credentials: bytes) -> bool:
    """Returns whether the account may send, and with these credentials."""
    names = {"organization_id": account[0], "id": account[1], "credentials": credentials}
    return bool(await session.fetch_value(_IS_CONNECTED_WITH, names))


async def providers_of(connection: AsyncConnection, wanted: Iterable[Key]) -> dict[Key, str]:
    """Returns the provider of each of the accounts that exists."""
    keys = key_arrays(wanted, "ids")
    if not keys["ids"]:
        return {}
    return {(row.organization_id, row.id): row.provider for row in await connection.execute(_PROVIDERS, keys)}


async def list_sealed(connection: AsyncConnection, *, after: Key, limit: int) -> list[Sealed]:
    """Lists the stored credentials of all accounts behind `after`, by organization and id."""
    names = {"organization_id": after[0], "id": after[1], "limit": limit}
    return [Sealed(**row._asdict()) for row in await connection.execute(_SEALED_PAGE, names)]


async def reseal(connection: AsyncConnection, account: Sealed, sealed: bytes) -> None:
    """Replaces the stored form of the credentials, unless other credentials are stored by now."""
    names = {
        "organization_id": account.organization_id,
        "id": account.id,
        "credentials": account.credentials,
        "sealed": sealed,
    }
    await connection.execute(_RESEAL, names)


def _values(account: SocialAccount) -> dict[str, Any]:
    return {name: getattr(account, name) for name in _COLUMNS} | {"channels": list(account.channels)}


def _account(row: Row[Any]) -> SocialAccount:
    fields = row._asdict()
    caps = caps_from(fields.pop("daily_caps", ()))
    return SocialAccount(**fields | {"channels": tuple(fields["channels"]), "daily_caps": caps})
