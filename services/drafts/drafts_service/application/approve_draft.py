"""ApproveDraft: allows the current content of drafts to be sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from drafts_service import wire
from drafts_service.adapters.postgres.drafts import lock_whole_drafts, save_approvals
from drafts_service.adapters.postgres.post_jobs import find_jobs_of
from drafts_service.domain.draft import (
    Draft,
    DraftKey,
    DraftView,
    approved,
    require_digest,
    require_draft,
    require_etag,
)
from servicekit.faults import Fault
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox, current_traceparent
from servicekit.pg.together import Together


@dataclass(frozen=True, slots=True, kw_only=True)
class Approving:
    """Names what is to be approved. An empty digest or etag is ignored; otherwise the draft must have it."""

    key: DraftKey
    content_digest: str
    etag: str
    approver: str
    traceparent: str


class ApproveDraft:
    """Calls that arrive at the same time are carried out together."""

    def __init__(self, *, ledger: RequestLedger, outbox: Outbox) -> None:
        self._outbox = outbox
        self._together = Together(ledger, self._approve)

    async def __call__(
        self, call: Call[DraftView, Answer], *, draft_id: str, content_digest: str, etag: str, approver: str
    ) -> Answer:
        """Ignores an empty `content_digest` or `etag`; otherwise the draft must have it."""
        approving = Approving(
            key=(call.organization_id, draft_id),
            content_digest=content_digest,
            etag=etag,
            approver=approver,
            traceparent=current_traceparent(),
        )
        return await self._together(call, approving)

    async def _approve(self, tx: Transaction, asked: Sequence[Approving], now: datetime) -> Sequence[DraftView | Fault]:
        drafts = await lock_whole_drafts(tx, {one.key for one in asked})
        jobs = await find_jobs_of(tx, drafts.keys())
        outcomes: list[DraftView | Fault] = []
        traces: dict[DraftKey, str] = {}  # of the drafts that change
        for one in asked:
            try:
                before = _checked(drafts.get(one.key), one)
            except Fault as refusal:
                outcomes.append(refusal)
                continue
            draft = drafts[one.key] = approved(before, approver=one.approver, now=now)
            if draft is not before:
                traces[one.key] = one.traceparent
            outcomes.append(DraftView(draft=draft, jobs=jobs.get(one.key, ())))
        if traces:
            await save_approvals(tx, [drafts[key] for key in traces], now=now)
            await self._outbox.append(
                tx, [wire.draft_saved(drafts[key], trace) for key, trace in traces.items()], now=now
            )
        return outcomes


def _checked(draft: Draft | None, asked: Approving) -> Draft:
    """Returns the draft if it may be approved; raises the fault otherwise."""
    found = require_draft(draft, asked.key)
    require_etag(found, asked.etag)
    require_digest(found, asked.content_digest)
    return found
