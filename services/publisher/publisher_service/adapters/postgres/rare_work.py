"""The search for work that there is seldom to do: one statement asks about all of it."""

from collections.abc import Mapping
from datetime import datetime

from publisher_service.adapters.postgres.credentials import IS_ONE_DUE as IS_ONE_CREDENTIAL_DUE
from publisher_service.adapters.postgres.destinations import IS_ONE_RELEASING
from publisher_service.adapters.postgres.follow_ups import IS_ONE_DUE
from publisher_service.adapters.postgres.freeing import IS_ONE_TO_FREE
from publisher_service.adapters.postgres.holds import IS_ONE_OVER
from publisher_service.adapters.postgres.marks import IN_SAFE_MODE
from publisher_service.adapters.postgres.notification_lines import IS_MAIL_DUE, IS_WEBHOOK_DUE
from publisher_service.adapters.postgres.parking import IS_ONE_PARKED
from publisher_service.adapters.postgres.preparations import IS_ONE_TO_PREPARE
from publisher_service.adapters.postgres.provider_quotas import IS_ONE_CLOSED
from publisher_service.adapters.postgres.relabeling import IS_ONE_RELABELED
from publisher_service.domain.rare_work import Work
from servicekit.pg.session import Session, Statement

_CONDITIONS: Mapping[Work, str] = {
    Work.RELABEL_LINES: IS_ONE_RELABELED,
    Work.RELEASE_DESTINATIONS: IS_ONE_RELEASING,
    Work.WAKE_PARKED: IS_ONE_PARKED,
    Work.END_HOLDS: IS_ONE_OVER,
    Work.FREE_POSTS: IS_ONE_TO_FREE,
    Work.FOLLOW_QUOTAS: IS_ONE_CLOSED,
    Work.PREPARE_POSTS: IS_ONE_TO_PREPARE,
    Work.RECONCILE: IN_SAFE_MODE,
    Work.REFRESH_CREDENTIALS: IS_ONE_CREDENTIAL_DUE,
    Work.SEND_MAILS: IS_MAIL_DUE,
    Work.CALL_WEBHOOKS: IS_WEBHOOK_DUE,
    Work.FOLLOW_UPS: IS_ONE_DUE,
}
_FIND = Statement(f"select {', '.join(_CONDITIONS.values())}")


async def find_work(session: Session, *, now: datetime) -> set[Work]:
    row = await session.fetch_row(_FIND, {"now": now})
    assert row is not None
    return {work for work, is_found in zip(_CONDITIONS, row, strict=True) if is_found}
