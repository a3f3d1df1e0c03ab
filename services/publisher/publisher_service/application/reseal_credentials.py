"""Seals all credentials with the first key of the ring, so that older keys can be removed."""

import logging
from collections import Counter

from opentelemetry import metrics

from publisher_service.adapters.postgres.accounts import Sealed, list_sealed, reseal
from publisher_service.adapters.vault import CredentialsUnreadable, Vault, key_id_of
from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Database

_log = logging.getLogger(__name__)

_COMMITTED = declare("publisher.reseal.committed")
_PAGE = 100
_meter = metrics.get_meter(__name__)
_sealed = _meter.create_gauge(
    "postflow.publish.credentials_sealed", description="Accounts by the key that seals their credentials"
)
_unreadable = _meter.create_gauge(
    "postflow.publish.credentials_unreadable", description="Accounts whose credentials no key of this process opens"
)


class ResealCredentials:
    """Walks through all accounts, one page per step, over and over; sets the gauges at the end of each walk."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault
        self._after = ("", "")
        self._seen: Counter[str] = Counter()
        self._shown: set[str] = set()
        self._failed = 0

    async def step(self) -> bool:
        """Returns whether the walk goes on."""
        async with self._database.read() as connection:
            page = await list_sealed(connection, after=self._after, limit=_PAGE)
        for each in page:
            await self._look_at(each)
        if len(page) == _PAGE:
            self._after = (page[-1].organization_id, page[-1].id)
            return True
        self._report()
        return False

    async def _look_at(self, account: Sealed) -> None:
        name = key_id_of(account.credentials)
        names = {"organization_id": account.organization_id, "account_id": account.id}
        try:
            # Tries every key, not only the named one: the name may have been given to another key since.
            opened = self._vault.opened(account.credentials, **names)
        except CredentialsUnreadable:
            self._failed += 1
            self._seen[name] += 1
            return
        if not opened.key_id == name == self._vault.current:
            await self._reseal(account, self._vault.seal(opened.credentials, **names))
        self._seen[self._vault.current] += 1

    async def _reseal(self, account: Sealed, sealed: bytes) -> None:
        """Stores the new form, unless the credentials were replaced meanwhile."""
        async with self._database.transaction() as tx:
            await reseal(tx.connection, account, sealed)
        await failpoint(_COMMITTED)

    def _report(self) -> None:
        for key_id in self._shown | set(self._seen) | {self._vault.current}:
            _sealed.set(self._seen[key_id], {"key": key_id or "unnamed"})
        self._shown |= set(self._seen)
        _unreadable.set(self._failed)
        if self._failed:
            _log.error("the credentials of %d accounts open with no key of this process", self._failed)
        self._after, self._seen, self._failed = ("", ""), Counter(), 0
