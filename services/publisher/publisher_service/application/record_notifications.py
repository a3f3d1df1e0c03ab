"""Records what people and webhooks are to be notified of, from Publisher's own events, each fact once.

All of it is in the transaction of the consumer: an event that comes again, or in another order, changes nothing.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from opentelemetry import metrics

from publisher_service.adapters.postgres.account_names import names_of_accounts
from publisher_service.adapters.postgres.accounts import credentials_of
from publisher_service.adapters.postgres.deliveries import insert_deliveries, insert_notifications
from publisher_service.adapters.postgres.notification_lines import count_mails, lock_mail_lines, wake_receivers
from publisher_service.adapters.postgres.recipient_lists import (
    brands_of_accounts,
    find_recipient_lists,
    note_account_brands,
)
from publisher_service.adapters.postgres.subscriptions import share_subscriptions
from publisher_service.adapters.providers.texts import without_secrets
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.domain.fan_out import Audience, FanOut, fan_out, hour_of
from publisher_service.domain.notification import ABOUT_ACCOUNTS, Notification, is_news, shown_error
from publisher_service.domain.recipients import DEFAULT_BRAND
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Transaction

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_too_old = _meter.create_counter(
    "postflow.notifications.too_old", description="Facts of which nobody was notified, because they were too old"
)
_joined = _meter.create_counter(
    "postflow.notifications.joined",
    description="E-mails that joined a digest because their organization had too many in an hour",
)


class RecordNotifications:
    def __init__(
        self,
        *,
        clock: DatabaseClock,
        vault: Vault,
        max_age: timedelta,
        mails_per_hour: int,
        on_recorded: Callable[[], None],
    ) -> None:
        """`on_recorded` is called when something may be due."""
        self._clock = clock
        self._vault = vault
        self._max_age = max_age
        self._mails_per_hour = mails_per_hour
        self._on_recorded = on_recorded

    async def __call__(self, tx: Transaction, announced: Sequence[Notification], now: datetime) -> None:
        fresh = [each for each in announced if is_news(each, now=now, max_age=self._max_age)]
        if len(fresh) < len(announced):
            _too_old.add(len(announced) - len(fresh))
            _log.info("%d facts are too old to notify anybody of them", len(announced) - len(fresh))
        posts = [each for each in fresh if each.kind not in ABOUT_ACCOUNTS and each.brand_id]
        await note_account_brands(
            tx.connection, ((each.organization_id, each.social_account_id, each.brand_id) for each in posts)
        )
        audience = await _audience(tx, fresh)
        wanted = [each for each in fresh if audience.has(each)]
        if wanted:
            await self._record(tx, wanted, audience)

    async def _record(self, tx: Transaction, wanted: Sequence[Notification], audience: Audience) -> None:
        # Webhooks are locked already; then the lines, then what waits in them.
        mailed = {each.organization_id for each in wanted if audience.mailed_to(each)}
        used = await lock_mail_lines(tx.connection, mailed)
        # Behind the lock: what joins a digest that is due by now would come too late for it.
        now = await self._clock.now(tx)
        hour = hour_of(now)
        mails = {key: count if time == hour else 0 for key, (time, count) in used.items()}
        room = {key: max(self._mails_per_hour - count, 0) for key, count in mails.items()}
        new = await insert_notifications(tx.connection, await self._shown(tx, wanted), now=now)
        found = fan_out(new, audience, room=room, now=now, max_age=self._max_age)
        due = await insert_deliveries(tx.connection, found.deliveries, found.items)
        await wake_receivers(tx.connection, due)
        counted = {key: mails[key] + sent for key, sent in found.mails.items()}
        await count_mails(tx.connection, counted, hour=hour)
        tx.after_commit(lambda: self._committed(found))

    def _committed(self, found: FanOut) -> None:
        if found.joined:
            _joined.add(found.joined)
        self._on_recorded()

    async def _shown(self, tx: Transaction, wanted: Sequence[Notification]) -> list[Notification]:
        """Returns the notifications with the names of their accounts, and errors without secrets."""
        accounts = {each.account_key for each in wanted if each.social_account_id}
        names = await names_of_accounts(tx.connection, accounts)
        failing = {each.account_key for each in wanted if each.facts.get("error_message")}
        secrets = {each: await self._secrets_of(tx, each) for each in sorted(failing)}
        return [_shown(each, names.get(each.account_key, ""), secrets.get(each.account_key, ())) for each in wanted]

    async def _secrets_of(self, tx: Transaction, account: tuple[str, str]) -> tuple[str, ...]:
        """Returns the secrets of an account, which no error must repeat; adapters have removed them once already."""
        organization_id, account_id = account
        *_, sealed = await credentials_of(tx.connection, organization_id, account_id)
        try:
            return self._vault.open(sealed, organization_id=organization_id, account_id=account_id).secrets
        except CredentialsUnreadable:
            return ()


async def _audience(tx: Transaction, fresh: Sequence[Notification]) -> Audience:
    """Returns who may want to hear of it. Their webhooks stay as they are until the transaction ends."""
    if not fresh:
        return Audience()
    brands = await brands_of_accounts(tx.connection, _accounts(fresh))
    keys = {(each.organization_id, brand) for each in fresh for brand in (DEFAULT_BRAND, each.brand_id)}
    keys |= {(organization_id, brand) for (organization_id, _), known in brands.items() for brand in known}
    return Audience(
        lists=await find_recipient_lists(tx.connection, keys),
        subscriptions=await share_subscriptions(tx.connection, (each.organization_id for each in fresh)),
        brands=brands,
    )


def _accounts(fresh: Iterable[Notification]) -> set[tuple[str, str]]:
    return {each.account_key for each in fresh if each.kind in ABOUT_ACCOUNTS}


def _shown(notification: Notification, account_name: str, secrets: tuple[str, ...]) -> Notification:
    facts = dict(notification.facts)
    if account_name:
        facts.setdefault("account_name", account_name)
    if error := str(facts.get("error_message", "")):
        facts["error_message"] = shown_error(without_secrets(error, secrets))
    return replace(notification, facts={name: fact for name, fact in facts.items() if fact != ""})
