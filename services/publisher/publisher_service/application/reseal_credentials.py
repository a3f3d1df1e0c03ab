"""Seals what older keys have sealed with the first key of the ring, so that an old key can be taken away."""

import logging
from collections import Counter

from opentelemetry import metrics

from publisher_service.adapters.postgres import accounts
from publisher_service.adapters.postgres.accounts import Sealed
from publisher_service.adapters.vault import CredentialsUnreadable, Vault, key_id_of
from servicekit.pg.database import Database

log = logging.getLogger(__name__)

_PAGE = 100
_meter = metrics.get_meter(__name__)
_sealed = _meter.create_gauge(
    "postflow.publish.credentials_sealed", description="Accounts by the key that seals their credentials"
)
_unreadable = _meter.create_gauge(
    "postflow.publish.credentials_unreadable", description="Accounts whose credentials no key of this process opens"
)


class ResealCredentials:
    """Walks through the accounts, a page at a step, again and again; at the end of each walk it tells the counts."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault
        self._after = ("", "")
        self._seen: Counter[str] = Counter()
        self._shown: set[str] = set()
        self._failed = 0

    async def step(self) -> bool:
        """Whether the walk goes on."""
        async with self._database.read() as connection:
            page = await accounts.sealed_page(connection, after=self._after, limit=_PAGE)
        for each in page:
            await self._look_at(each)
        if len(page) == _PAGE:
            self._after = (page[-1].organization_id, page[-1].id)
            return True
        self._tell()
        return False

    async def _look_at(self, account: Sealed) -> None:
        key_id = key_id_of(account.credentials)
        if key_id != self._vault.current:
            key_id = await self._reseal(account, key_id)
        self._seen[key_id] += 1

    async def _reseal(self, account: Sealed, key_id: str) -> str:
        names = {"organization_id": account.organization_id, "account_id": account.id}
        try:
            token = self._vault.open(account.credentials, **names)
        except CredentialsUnreadable:
            self._failed += 1
            return key_id
        async with self._database.transaction() as tx:
            # Not over credentials that were replaced meanwhile.
            await accounts.reseal(tx.connection, account, self._vault.seal(token, **names))
        return self._vault.current

    def _tell(self) -> None:
        for key_id in self._shown | set(self._seen) | {self._vault.current}:
            _sealed.set(self._seen[key_id], {"key": key_id or "unnamed"})
        self._shown |= set(self._seen)
        _unreadable.set(self._failed)
        if self._failed:
            log.error("the credentials of %d accounts open with no key of this process", self._failed)
        self._after, self._seen, self._failed = ("", ""), Counter(), 0
