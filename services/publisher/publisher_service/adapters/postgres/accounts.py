"""Social accounts and their sealed credentials."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.account_caps import CAPS, caps_from, caps_of
from publisher_service.adapters.postgres.credentials import CREDENTIALS, credentials_from, lock_credential
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.account import AccountFilter, Connection, SocialAccount
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
    "settings",
)
_ACCOUNT = ", ".join(_COLUMNS)
_VALUES = ", ".join("cast(:settings as jsonb)" if name == "settings" else f":{name}" for name in _COLUMNS)
# These never change.
_FIXED = ("organization_id", "id", "provider", "create_time")
_CHANGES = ", ".join(
    f"{name} = cast(:{name} as jsonb)" if name == "settings" else f"{name} = :{name}"
    for name in _COLUMNS
    if name not in _FIXED
)

# Waits for a concurrent insert of the same account; the second one inserts nothing.
_INSERT = text(f"""
    insert into social_account ({_ACCOUNT}, credentials)
    values ({_VALUES}, :credentials)
    on conflict (organization_id, id) do nothing
    returning id
""")
_GET = text(f"""
    select {_ACCOUNT}, {CAPS}, life.* from social_account {CREDENTIALS}
    where organization_id = :organization_id and id = :id
""")
_LOCK = text(f"""
    select {_ACCOUNT} from social_account where organization_id = :organization_id and id = :id for update
""")
_PAGE = f"""
    select {_ACCOUNT}, {CAPS.replace("{}", "{{}}")}, life.* from social_account {CREDENTIALS}
    where organization_id = :organization_id and id > :after {{conditions}} order by id limit :limit
"""
_SAVE = text(f"""
    update social_account set {_CHANGES}
    where organization_id = :organization_id and id = :id
""")
_SET_CREDENTIALS = text("""
    update social_account set credentials = :credentials where organization_id = :organization_id and id = :id
""")
_CREDENTIALS = text("""
    select provider, external_account_id, cast(settings as text) as settings, credentials from social_account
    where organization_id = :organization_id and id = :id
""")

_IS_CONNECTED_WITH = Statement("""
    select g.connected and (
        s.credentials = cast(:credentials as bytea)
        or exists (
            select from credential c
            where c.organization_id = g.organization_id and c.social_account_id = g.social_account_id
                and c.replaced_digest = sha256(cast(:credentials as bytea))
        )
    )
    from account_gate g
    join social_account s on s.organization_id = g.organization_id and s.id = g.social_account_id
    where g.organization_id = :organization_id and g.social_account_id = :id
""")
_PROVIDERS = Statement("""
    select s.organization_id, s.id, s.provider
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    join social_account s on s.organization_id = wanted.organization_id and s.id = wanted.id
""")
_SEALED_PAGE = text("""
    select organization_id, id, credentials from social_account
    where (organization_id, id) > (:organization_id, :id) order by organization_id, id limit :limit
""")
_RESEAL = text("""
    with resealed as (
        update social_account set credentials = :sealed
        where organization_id = :organization_id and id = :id and credentials = :credentials
        returning organization_id, id
    )
    update credential c set sealed_digest = sha256(:sealed), replaced_digest = sha256(:credentials)
    from resealed r
    where c.organization_id = r.organization_id and c.social_account_id = r.id
        and c.sealed_digest = sha256(:credentials)
""")
# Of concurrent calls for one account at a provider, the second sees what the first has connected.
_LOCK_EXTERNAL = text("select pg_advisory_xact_lock(hashtextextended(cast(:name as text), 0))")
_CONNECTED_AS = text("""
    select id from social_account
    where organization_id = :organization_id and provider = :provider and external_account_id = :external_account_id
        and id <> :id and state = 'CONNECTED'
    order by id limit 1
""")
# Accounts that were disconnected count: posts of theirs may be out, and their owner may connect them again.
_KNOWN_TO_ANOTHER = text("""
    select exists (
        select from social_account
        where provider = :provider and external_account_id = :external_account_id
            and organization_id <> :organization_id
    )
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
    # Separate statements: their snapshots are younger than the lock.
    caps = await caps_of(connection, (organization_id, account_id))
    credentials = await lock_credential(connection, (organization_id, account_id))
    return replace(_account(row), daily_caps=caps, credentials=credentials)


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


async def credentials_of(
    connection: AsyncConnection, organization_id: str, account_id: str
) -> tuple[str, str, Mapping[str, str], bytes]:
    """Returns provider, the account's name there, settings, and sealed credentials; all empty without the account."""
    names = {"organization_id": organization_id, "id": account_id}
    row = (await connection.execute(_CREDENTIALS, names)).one_or_none()
    return (
        ("", "", {}, b"")
        if row is None
        else (row.provider, row.external_account_id, json.loads(row.settings), row.credentials)
    )


async def is_connected_with(session: Session, account: Key, credentials: bytes) -> bool:
    """Returns whether the account may send, and with these credentials, or with those that a refresh made of them."""
    names = {"organization_id": account[0], "id": account[1], "credentials": credentials}
    return bool(await session.fetch_value(_IS_CONNECTED_WITH, names))


async def connected_elsewhere(connection: AsyncConnection, account: SocialAccount) -> str | None:
    """Returns the id under which the organization has connected the same account of the provider, if any other."""
    names = {
        "organization_id": account.organization_id,
        "provider": account.provider,
        "external_account_id": account.external_account_id,
        "id": account.id,
    }
    found: str | None = (await connection.execute(_CONNECTED_AS, names)).scalar_one_or_none()
    return found


async def is_known_to_another(connection: AsyncConnection, wanted: Connection) -> bool:
    """Returns whether another organization has the same account of the provider, or had it."""
    names = {
        "organization_id": wanted.organization_id,
        "provider": wanted.provider,
        "external_account_id": wanted.external_account_id,
    }
    found: bool = (await connection.execute(_KNOWN_TO_ANOTHER, names)).scalar_one()
    return found


async def lock_external(connection: AsyncConnection, organization_id: str, provider: str, name: str) -> None:
    """Has other calls wait that would connect the same account of the provider; before any other lock.

    Without an `organization_id` the calls of all organizations wait.
    """
    await connection.execute(_LOCK_EXTERNAL, {"name": f"{organization_id}|{provider}|{name}"})


async def providers_of(session: Session, wanted: Iterable[Key]) -> dict[Key, str]:
    """Returns the provider of each of the accounts that exists."""
    keys = key_arrays(wanted, "ids")
    if not keys["ids"]:
        return {}
    return {(row[0], row[1]): row[2] for row in await session.fetch(_PROVIDERS, keys)}


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
    values = {name: getattr(account, name) for name in _COLUMNS}
    return values | {"channels": list(account.channels), "settings": json.dumps(dict(account.settings))}


def _account(row: Row[Any]) -> SocialAccount:
    fields = row._asdict()
    caps = caps_from(fields.pop("daily_caps", ()))
    credentials = credentials_from(fields)
    own = {"channels": tuple(fields["channels"]), "settings": fields["settings"]}
    return SocialAccount(**fields | own | {"daily_caps": caps, "credentials": credentials})
