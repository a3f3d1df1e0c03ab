"""ApproveDraft and BatchApproveDrafts: allow the current content of drafts to be sent."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from drafts_service.adapters.postgres.drafts import lock_whole_drafts, save_approvals, save_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs_of
from drafts_service.application.content_check import ContentCheck
from drafts_service.domain.draft import (
    Draft,
    DraftKey,
    DraftView,
    GivenApproval,
    approved,
    edited,
    require_digest,
    require_draft,
    require_etag,
)
from drafts_service.domain.media import MediaUnchecked, facts_of, pinned, unpinned
from drafts_service.wire import contents, events
from servicekit.faults import Fault
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox, current_traceparent
from servicekit.pg.together import Together

_Asked = tuple[DraftKey, GivenApproval, str]
"""A draft, what is asked of it, and the trace of the call."""


class DraftApproval:
    """Approves drafts in the caller's transaction."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def __call__(self, tx: Transaction, asked: Sequence[_Asked], now: datetime) -> Sequence[DraftView | Fault]:
        drafts = await lock_whole_drafts(tx, {key for key, _, _ in asked})
        jobs = await find_jobs_of(tx, drafts.keys())
        outcomes: list[DraftView | Fault] = []
        traces: dict[DraftKey, str] = {}  # of the drafts that change
        for key, given, trace in asked:
            try:
                before = _checked(drafts.get(key), key, given)
                whole = _with_media(before, given, now)
            except Fault as refusal:
                outcomes.append(refusal)
                continue
            if whole is not before:
                await save_draft(tx.connection, whole)
            draft = drafts[key] = approved(whole, approver=given.approver, now=now)
            if draft is not before:
                traces[key] = trace
            outcomes.append(DraftView(draft=draft, jobs=jobs.get(key, ())))
        if traces:
            await save_approvals(tx, [drafts[key] for key in traces], now=now)
            await self._outbox.append(
                tx, [events.draft_saved(drafts[key], trace) for key, trace in traces.items()], now=now
            )
        return outcomes


class ApproveDraft:
    """Carries out calls that arrive at the same time together."""

    def __init__(self, *, approval: DraftApproval, ledger: RequestLedger, check: ContentCheck) -> None:
        self._check = check
        self._together = Together(ledger, approval)

    async def __call__(self, call: Call[DraftView, Answer], given: GivenApproval) -> Answer:
        try:
            return await self._together(call, _asked(call, given))
        except MediaUnchecked as unchecked:
            found = await self._check(call.organization_id, unchecked.content, unchecked.targets)
            return await self._together(call, _asked(call, replace(given, media=facts_of(found))))


class BatchApproveDrafts:
    """Fetches no media: a draft whose media is not known yet is MEDIA_UNCHECKED."""

    def __init__(self, *, approval: DraftApproval, ledger: RequestLedger) -> None:
        self._approval = approval
        self._ledger = ledger

    async def __call__(self, call: Call[Sequence[DraftView | Fault], Answer], given: Sequence[GivenApproval]) -> Answer:
        asked = [_asked(call, each) for each in given]
        return await self._ledger.once(call, lambda tx, now: self._approval(tx, asked, now))


def _asked(call: Call[Any, Any], given: GivenApproval) -> _Asked:
    return (call.organization_id, given.draft_id), given, current_traceparent()


def _with_media(draft: Draft, given: GivenApproval, now: datetime) -> Draft:
    """Returns the draft with the bytes of all its media known; raises MediaUnchecked if they are not."""
    if draft.approval is not None:
        return draft
    content = contents.decoded_body(draft.body)
    whole = pinned(content, given.media)
    if unpinned(whole):
        raise MediaUnchecked(content, draft.targets)
    return (
        draft if whole is content else edited(draft, body=contents.encoded_body(whole), targets=draft.targets, now=now)
    )


def _checked(draft: Draft | None, key: DraftKey, given: GivenApproval) -> Draft:
    """Returns the draft if it may be approved; raises the fault otherwise."""
    found = require_draft(draft, key)
    require_etag(found, given.etag)
    require_digest(found, given.content_digest)
    return found
