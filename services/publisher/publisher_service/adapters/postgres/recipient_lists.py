"""The lists of people who get e-mails, and the brands for which accounts have posted."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.notification import NotificationKind
from publisher_service.domain.recipients import Mode, Preferences, Recipient, RecipientList, Role

MOST_BRANDS: Final = 100
"""The brands of one account whose ADMINs are notified of what happens to it."""

_COLUMNS = (
    "organization_id",
    "brand_id",
    "name",
    "time_zone",
    "recipients",
    "kinds",
    "published",
    "digest_hour",
    "announced_version",
    "version",
    "update_time",
)
_LIST = ", ".join(_COLUMNS)
_IS_LIST = "organization_id = :organization_id and brand_id = :brand_id"

_GET = text(f"select {_LIST} from recipient_list where {_IS_LIST}")
_LOCK = text(f"select {_LIST} from recipient_list where {_IS_LIST} for update")
_VALUES = ", ".join(f"cast(:{name} as jsonb)" if name == "recipients" else f":{name}" for name in _COLUMNS)
# Waits for a concurrent insert of the same list; the second one inserts nothing.
_INSERT = text(f"insert into recipient_list ({_LIST}) values ({_VALUES}) on conflict do nothing returning brand_id")
_SAVE = text(f"""
    update recipient_list set ({", ".join(_COLUMNS[2:])}) = ({_VALUES.partition(":brand_id, ")[2]}) where {_IS_LIST}
""")
_PAGE = f"""
    select {_LIST} from recipient_list
    where organization_id = :organization_id {{behind}} order by brand_id limit :limit
"""
_FIND = text(f"""
    select {_LIST} from unnest(cast(:organization_ids as text[]), cast(:brand_ids as text[])) as w (org, brand)
    cross join lateral (
        select {_LIST} from recipient_list where organization_id = w.org and brand_id = w.brand limit 1
    ) as found
""")
_NOTE_BRANDS = text("""
    insert into account_brand (organization_id, social_account_id, brand_id)
    select * from unnest(
        cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:brand_ids as text[])
    ) as seen
    on conflict do nothing
""")
_BRANDS_OF = text("""
    select organization_id, social_account_id, brand_id
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[])) as w (org, account)
    cross join lateral (
        select organization_id, social_account_id, brand_id from account_brand
        where organization_id = w.org and social_account_id = w.account order by brand_id limit :most
    ) as found
""")


async def get_recipient_list(connection: AsyncConnection, organization_id: str, brand_id: str) -> RecipientList | None:
    return _one(await connection.execute(_GET, {"organization_id": organization_id, "brand_id": brand_id}))


async def lock_recipient_list(connection: AsyncConnection, organization_id: str, brand_id: str) -> RecipientList | None:
    return _one(await connection.execute(_LOCK, {"organization_id": organization_id, "brand_id": brand_id}))


async def insert_recipient_list(connection: AsyncConnection, recipients: RecipientList) -> bool:
    """Returns False if the list exists already; its row is then committed."""
    return (await connection.execute(_INSERT, _values(recipients))).one_or_none() is not None


async def save_recipient_list(connection: AsyncConnection, recipients: RecipientList) -> None:
    """Writes a list that this transaction has locked."""
    await connection.execute(_SAVE, _values(recipients))


async def list_recipient_lists(
    connection: AsyncConnection, organization_id: str, *, after: str | None, limit: int
) -> list[RecipientList]:
    """Lists the lists behind the brand `after`; the default list comes first."""
    names: dict[str, Any] = {"organization_id": organization_id, "limit": limit}
    # The default list, whose brand is empty, is behind no other.
    behind = "" if after is None else "and brand_id > :after"
    rows = await connection.execute(text(_PAGE.format(behind=behind)), names | ({"after": after} if behind else {}))
    return [_list(row) for row in rows]


async def find_recipient_lists(connection: AsyncConnection, keys: Iterable[Key]) -> dict[Key, RecipientList]:
    """Returns those of the lists that exist, by organization and brand."""
    found = map(_list, await connection.execute(_FIND, key_arrays(keys, "brand_ids")))
    return {each.key: each for each in found}


async def note_account_brands(connection: AsyncConnection, seen: Iterable[tuple[str, str, str]]) -> None:
    """Notes organizations, accounts and brands of posts."""
    unique = sorted(set(seen))
    if unique:
        organizations, accounts, brands = zip(*unique, strict=True)
        names = {"organization_ids": list(organizations), "account_ids": list(accounts), "brand_ids": list(brands)}
        await connection.execute(_NOTE_BRANDS, names)


async def brands_of_accounts(connection: AsyncConnection, accounts: Iterable[Key]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = {}
    names = key_arrays(accounts, "account_ids") | {"most": MOST_BRANDS}
    for row in await connection.execute(_BRANDS_OF, names):
        found.setdefault((row.organization_id, row.social_account_id), []).append(row.brand_id)
    return found


def _one(rows: Any) -> RecipientList | None:
    row = rows.one_or_none()
    return None if row is None else _list(row)


def _list(row: Row[Any]) -> RecipientList:
    fields = row._asdict()
    kinds, published, hour = fields.pop("kinds"), fields.pop("published"), fields.pop("digest_hour")
    return RecipientList(
        **fields
        | {
            "recipients": tuple(map(_recipient, fields["recipients"])),
            "preferences": Preferences(
                # A kind of a newer release is left out: this one notifies of no such thing.
                kinds=tuple(kind for kind in NotificationKind if kind in kinds),
                published=Mode(published),
                digest_hour=hour,
            ),
        }
    )


def _recipient(stored: Mapping[str, str]) -> Recipient:
    return Recipient(email=stored["email"], name=stored["name"], role=Role(stored["role"]))


def _values(recipients: RecipientList) -> dict[str, Any]:
    stored = [{"email": each.email, "name": each.name, "role": each.role} for each in recipients.recipients]
    return {name: getattr(recipients, name, None) for name in _COLUMNS} | {
        "recipients": json.dumps(stored),
        "kinds": list(recipients.preferences.kinds),
        "published": recipients.preferences.published,
        "digest_hour": recipients.preferences.digest_hour,
    }
