"""Webhooks and their sealed secrets.

A transaction locks a webhook before its line, and the line before its deliveries.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.notification import NotificationKind
from publisher_service.domain.subscription import PauseReason, Subscription, SubscriptionState

_COLUMNS = (
    "organization_id",
    "id",
    "url",
    "kinds",
    "brand_ids",
    "description",
    "state",
    "state_reason",
    "failures",
    "exhausted",
    "failing_since",
    "last_success_time",
    "former_secret_end_time",
    "version",
    "create_time",
    "update_time",
)
_SUBSCRIPTION = ", ".join(_COLUMNS)
# A secret and the end of a former one change together, elsewhere.
_MUTABLE = tuple(
    name for name in _COLUMNS if name not in {"organization_id", "id", "create_time", "former_secret_end_time"}
)
_IS_SUBSCRIPTION = "organization_id = :organization_id and id = :id"

_INSERT = text(f"""
    insert into webhook_subscription ({_SUBSCRIPTION}, secret)
    values ({", ".join(f":{name}" for name in _COLUMNS)}, :secret)
    on conflict do nothing returning id
""")
_GET = text(f"select {_SUBSCRIPTION} from webhook_subscription where {_IS_SUBSCRIPTION}")
_LOCK = text(f"select {_SUBSCRIPTION} from webhook_subscription where {_IS_SUBSCRIPTION} for update")
_SAVE = text(f"""
    update webhook_subscription set {", ".join(f"{name} = :{name}" for name in _MUTABLE)} where {_IS_SUBSCRIPTION}
""")
_DELETE = text(f"delete from webhook_subscription where {_IS_SUBSCRIPTION}")
_PAGE = text(f"""
    select {_SUBSCRIPTION} from webhook_subscription
    where organization_id = :organization_id and id > :after order by id limit :limit
""")
_COUNT = text("select count(*) from webhook_subscription where organization_id = :organization_id")
# Nobody pauses, resumes or deletes one of them until their deliveries are stored.
_SHARE = text(f"""
    select {_SUBSCRIPTION} from webhook_subscription
    where organization_id = any(cast(:organization_ids as text[])) order by organization_id, id for share
""")
_SECRETS = text(f"""
    select organization_id, id, secret, former_secret, former_secret_end_time from webhook_subscription
    where {_IS_SUBSCRIPTION}
""")
_SET_SECRETS = text(f"""
    update webhook_subscription
    set secret = :secret, former_secret = :former_secret, former_secret_end_time = :former_secret_end_time
    where {_IS_SUBSCRIPTION}
""")
_FIND = text(f"""
    select {_SUBSCRIPTION}, secret, former_secret
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as w (of_organization, of_id)
    cross join lateral (
        select * from webhook_subscription where organization_id = w.of_organization and id = w.of_id limit 1
    ) as found
""")
_SEALED_PAGE = text("""
    select organization_id, id, secret, former_secret, former_secret_end_time from webhook_subscription
    where (organization_id, id) > (:organization_id, :id) order by organization_id, id limit :limit
""")
_RESEAL = text(f"""
    update webhook_subscription set secret = :sealed, former_secret = :former
    where {_IS_SUBSCRIPTION} and secret = :secret and former_secret is not distinct from :former_secret
""")
_COUNT_PAUSED = text("""
    select count(*) from (select from webhook_subscription where state = 'PAUSED' limit :most) as paused
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSecrets:
    """The secrets of a webhook as they are stored."""

    organization_id: str
    id: str
    secret: bytes
    former_secret: bytes | None = None
    former_secret_end_time: datetime | None = None


async def insert_subscription(connection: AsyncConnection, subscription: Subscription, secret: bytes) -> bool:
    """Returns False if the webhook exists already; its row is then committed."""
    added = await connection.execute(_INSERT, _values(subscription) | {"secret": secret})
    return added.one_or_none() is not None


async def get_subscription(
    connection: AsyncConnection, organization_id: str, subscription_id: str
) -> Subscription | None:
    return _one(await connection.execute(_GET, {"organization_id": organization_id, "id": subscription_id}))


async def lock_subscription(
    connection: AsyncConnection, organization_id: str, subscription_id: str
) -> Subscription | None:
    return _one(await connection.execute(_LOCK, {"organization_id": organization_id, "id": subscription_id}))


async def save_subscription(connection: AsyncConnection, subscription: Subscription) -> None:
    """Writes a webhook that this transaction has locked, without its secrets."""
    await connection.execute(_SAVE, _values(subscription))


async def delete_subscription(connection: AsyncConnection, subscription: Subscription) -> None:
    await connection.execute(_DELETE, {"organization_id": subscription.organization_id, "id": subscription.id})


async def list_subscriptions(
    connection: AsyncConnection, organization_id: str, *, after: str, limit: int
) -> list[Subscription]:
    names = {"organization_id": organization_id, "after": after, "limit": limit}
    return [_subscription(row) for row in await connection.execute(_PAGE, names)]


async def count_subscriptions(connection: AsyncConnection, organization_id: str) -> int:
    count: int = (await connection.execute(_COUNT, {"organization_id": organization_id})).scalar_one()
    return count


async def count_paused_subscriptions(connection: AsyncConnection, *, most: int) -> int:
    count: int = (await connection.execute(_COUNT_PAUSED, {"most": most})).scalar_one()
    return count


async def share_subscriptions(
    connection: AsyncConnection, organization_ids: Iterable[str]
) -> dict[str, list[Subscription]]:
    """Returns the webhooks of the organizations, kept as they are until this transaction ends."""
    found: dict[str, list[Subscription]] = {}
    for row in await connection.execute(_SHARE, {"organization_ids": sorted(set(organization_ids))}):
        found.setdefault(row.organization_id, []).append(_subscription(row))
    return found


async def secrets_of(connection: AsyncConnection, subscription: Subscription) -> SealedSecrets:
    """Returns the secrets of a webhook that this transaction has locked."""
    names = {"organization_id": subscription.organization_id, "id": subscription.id}
    row = (await connection.execute(_SECRETS, names)).one()
    return SealedSecrets(**row._asdict())


async def set_secrets(connection: AsyncConnection, secrets: SealedSecrets) -> None:
    names = {name: getattr(secrets, name) for name in SealedSecrets.__slots__}
    await connection.execute(_SET_SECRETS, names)


async def find_subscriptions(
    connection: AsyncConnection, keys: Iterable[Key]
) -> dict[Key, tuple[Subscription, SealedSecrets]]:
    """Returns those of the webhooks that exist, with their secrets."""
    found: dict[Key, tuple[Subscription, SealedSecrets]] = {}
    for row in await connection.execute(_FIND, key_arrays(keys, "ids")):
        found[row.organization_id, row.id] = (
            _subscription(row),
            SealedSecrets(
                organization_id=row.organization_id,
                id=row.id,
                secret=row.secret,
                former_secret=row.former_secret,
                former_secret_end_time=row.former_secret_end_time,
            ),
        )
    return found


async def list_sealed_secrets(connection: AsyncConnection, *, after: Key, limit: int) -> list[SealedSecrets]:
    """Lists the stored secrets of all webhooks behind `after`, by organization and id."""
    names = {"organization_id": after[0], "id": after[1], "limit": limit}
    return [SealedSecrets(**row._asdict()) for row in await connection.execute(_SEALED_PAGE, names)]


async def reseal_secrets(
    connection: AsyncConnection, stored: SealedSecrets, sealed: bytes, former: bytes | None
) -> None:
    """Replaces the stored form of the secrets, unless others are stored by now."""
    names = {name: getattr(stored, name) for name in SealedSecrets.__slots__}
    await connection.execute(_RESEAL, names | {"sealed": sealed, "former": former})


def _one(rows: Any) -> Subscription | None:
    row = rows.one_or_none()
    return None if row is None else _subscription(row)


def _subscription(row: Row[Any]) -> Subscription:
    fields = {name: getattr(row, name) for name in _COLUMNS}
    return Subscription(
        **fields
        | {
            # A webhook that asks for kinds of a newer release only must not get all of this one's.
            "kinds": tuple(map(_kind, fields["kinds"])),
            "brand_ids": tuple(fields["brand_ids"]),
            "state": SubscriptionState(fields["state"]),
            "state_reason": PauseReason(fields["state_reason"]),
        }
    )


def _kind(text: str) -> NotificationKind:
    return NotificationKind(text) if text in _KINDS else NotificationKind.TEST


_KINDS = frozenset(kind.value for kind in NotificationKind)


def _values(subscription: Subscription) -> dict[str, Any]:
    return {name: getattr(subscription, name) for name in _COLUMNS} | {
        "kinds": list(subscription.kinds),
        "brand_ids": list(subscription.brand_ids),
    }
