"""UpdateAccount: changes the name, the channels or the daily caps of an account."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from channels import Action
from publisher_service.adapters.postgres.account_caps import (
    reserve_earlier_posts,
    save_caps,
    uncounted,
    used_today,
)
from publisher_service.adapters.postgres.accounts import lock_account, save_account
from publisher_service.adapters.postgres.holds import lock_gate
from publisher_service.adapters.postgres.limits import begin_days
from publisher_service.adapters.providers.provider import Providers
from publisher_service.application.changing_channels import change_channels
from publisher_service.domain.account import AccountChange, AccountState, SocialAccount, changed, require_account
from publisher_service.domain.limits import LimitDefaults
from publisher_service.wire.accounts import account_connected, account_disconnected
from servicekit.failpoints import declare, failpoint
from servicekit.faults import InvalidField, Refused
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox

R = TypeVar("R")

_COMMITTED = declare("publisher.update_account.committed")
# More than that: no post of the account's present day is older.
_LONGEST_DAY = timedelta(days=2)


class UpdateAccount:
    def __init__(
        self,
        *,
        ledger: RequestLedger,
        outbox: Outbox,
        providers: Providers,
        defaults: LimitDefaults,
        on_caps_changed: Callable[[], None],
    ) -> None:
        """`on_caps_changed` is called when posts that waited for a cap may go."""
        self._ledger = ledger
        self._outbox = outbox
        self._providers = providers
        self._defaults = defaults
        self._on_caps_changed = on_caps_changed

    async def __call__(self, call: Call[SocialAccount, R], change: AccountChange) -> R:
        answer = await self._ledger.once(call, lambda tx, now: self._update(tx, now, change))
        await failpoint(_COMMITTED)
        return answer

    async def _update(self, tx: Transaction, now: datetime, change: AccountChange) -> SocialAccount:
        key = (change.organization_id, change.account_id)
        # Before the account, as in a settlement. A claim needs the gate, so the next one obeys the caps.
        await lock_gate(tx.connection, key)
        known = require_account(await lock_account(tx.connection, *key), change.account_id)
        account = changed(known, self._offered(known, change), now=now)
        if account is known:
            return known
        await change_channels(tx, known, account, now=now)
        if account.daily_caps != known.daily_caps:
            await self._save_caps(tx, known, account, now, allow_below_used=change.allow_below_used)
        await save_account(tx.connection, account)
        is_connected = account.state == AccountState.CONNECTED
        event = account_connected(account) if is_connected else account_disconnected(account, account.error_message)
        await self._outbox.append(tx, [event], now=now)
        return account

    def _offered(self, account: SocialAccount, change: AccountChange) -> AccountChange:
        """Returns the change with all channels of the provider if it names none; refuses a channel not offered."""
        if change.channels is None:
            return change
        provider = self._providers.get(account.provider)
        if provider is None:
            raise InvalidField("channels", f"this release does not have {account.provider}", reason="UNKNOWN_PROVIDER")
        for index, channel in enumerate(change.channels):
            if channel not in provider.channels:
                offered = ", ".join(provider.channels)
                raise InvalidField(
                    f"channels.channels[{index}]",
                    f"{provider.name} does not offer {channel}; it offers {offered}",
                    reason="CHANNEL_NOT_OFFERED",
                )
        return replace(change, channels=change.channels or provider.channels)

    async def _save_caps(
        self, tx: Transaction, known: SocialAccount, account: SocialAccount, now: datetime, *, allow_below_used: bool
    ) -> None:
        key = (account.organization_id, account.id)
        differ = [each for each in Action if known.daily_caps.get(each) != account.daily_caps.get(each)]
        await save_caps(tx.connection, key, account.daily_caps, changed=differ, now=now)
        days = await uncounted(tx.connection, key, differ)
        if Action.POST in account.daily_caps and Action.POST not in known.daily_caps:
            await reserve_earlier_posts(tx.connection, key, since=now - _LONGEST_DAY)
            days.add(Action.POST)
        if days:
            await begin_days(tx.connection, {key: now}, {key: days})
        if not allow_below_used:
            caps = {**self._defaults.caps, **account.daily_caps}
            wanted = {each: caps[each] for each in differ if each in caps}
            _require_room(wanted, await used_today(tx.connection, key, now=now))
        tx.after_commit(self._on_caps_changed)


def _require_room(wanted: Mapping[Action, int], used: Mapping[str, int]) -> None:
    for action, cap in wanted.items():
        if cap < used.get(action, 0):
            raise Refused(
                "CAP_BELOW_USED",
                f"the sends of today that count for {action} are {used[action]} already",
                metadata={"action": action.value, "cap": str(cap), "used": str(used[action])},
            )
