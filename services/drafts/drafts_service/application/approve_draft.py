"""ApproveDraft and BatchApproveDrafts: allow the current content of drafts to be sent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from drafts_service.adapters.postgres.drafts import lock_whole_drafts, save_approvals, save_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs_of
from drafts_service.application.content_check import ContentCheck
from drafts_service.domain.account import AccountsUnchecked, require_learned
from drafts_service.domain.channel_rules import Rules, require_within_rules
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    key: DraftKey
    given: GivenApproval
    traceparent: str
    rules: Rules | None  # None if they are not known
    is_learned: bool = False  # the accounts have been asked for; one that is still unknown is not checked


class DraftApproval:
    """Approves drafts in the caller's transaction."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def __call__(self, tx: Transaction, asked: Sequence[_Asked], now: datetime) -> Sequence[DraftView | Fault]:
        drafts = await lock_whole_drafts(tx, {each.key for each in asked})
        jobs = await find_jobs_of(tx, drafts.keys())
        outcomes: list[DraftView | Fault] = []
        traces: dict[DraftKey, str] = {}  # of the drafts that change
        for each in asked:
            key = each.key
            try:
                before = _checked(drafts.get(key), key, each.given)
                whole = _whole(before, each, now)
            except Fault as refusal:
                outcomes.append(refusal)
                continue
            if whole is not before:
                await save_draft(tx.connection, whole)
            draft = drafts[key] = approved(whole, approver=each.given.approver, now=now)
            if draft is not before:
                traces[key] = each.traceparent
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
        asked = _asked(call, given, await self._check.rules())
        try:
            return await self._together(call, asked)
        except AccountsUnchecked as unchecked:
            await self._check.learn(call.organization_id, unchecked.targets)
        except MediaUnchecked as unchecked:
            found = await self._check(call.organization_id, unchecked.content, unchecked.targets)
            asked = replace(asked, given=replace(given, media=facts_of(found)))
        return await self._together(call, replace(asked, is_learned=True))


class BatchApproveDrafts:
    """Fetches no media: a draft whose media is not known yet is MEDIA_UNCHECKED."""

    def __init__(self, *, approval: DraftApproval, ledger: RequestLedger, check: ContentCheck) -> None:
        self._approval = approval
        self._ledger = ledger
        self._check = check

    async def __call__(self, call: Call[Sequence[DraftView | Fault], Answer], given: Sequence[GivenApproval]) -> Answer:
        rules = await self._check.rules()
        asked = [_asked(call, each, rules) for each in given]
        try:
            return await self._ledger.once(call, lambda tx, now: self._approve_known(tx, asked, now))
        except AccountsUnchecked as unchecked:
            await self._check.learn(call.organization_id, unchecked.targets)
        learned = [replace(each, is_learned=True) for each in asked]
        return await self._ledger.once(call, lambda tx, now: self._approval(tx, learned, now))

    async def _approve_known(
        self, tx: Transaction, asked: Sequence[_Asked], now: datetime
    ) -> Sequence[DraftView | Fault]:
        """Raises AccountsUnchecked for all drafts together, so that their accounts are asked for at once."""
        outcomes = await self._approval(tx, asked, now)
        targets = [each for one in outcomes if isinstance(one, AccountsUnchecked) for each in one.targets]
        if targets:
            raise AccountsUnchecked(targets)
        return outcomes


def _asked(call: Call[Any, Any], given: GivenApproval, rules: Rules | None) -> _Asked:
    key = (call.organization_id, given.draft_id)
    return _Asked(key=key, given=given, traceparent=current_traceparent(), rules=rules)


def _whole(draft: Draft, asked: _Asked, now: datetime) -> Draft:
    """Returns the draft with the bytes of all its media known, and within the rules of its channels.

    Raises MediaUnchecked or AccountsUnchecked if something is still to be found out, or CONTENT_BREAKS_RULES.
    """
    if draft.approval is not None:
        return draft
    content = contents.decoded_body(draft.body)
    whole = pinned(content, asked.given.media)
    if unpinned(whole):
        raise MediaUnchecked(content, draft.targets)
    if asked.rules:
        if not asked.is_learned:
            require_learned(draft.targets, draft.obstacles, draft.providers)
        require_within_rules(whole, draft.targets, draft.providers, asked.rules)
    return (
        draft if whole is content else edited(draft, body=contents.encoded_body(whole), targets=draft.targets, now=now)
    )


def _checked(draft: Draft | None, key: DraftKey, given: GivenApproval) -> Draft:
    """Returns the draft if it may be approved; raises the fault otherwise."""
    found = require_draft(draft, key)
    require_etag(found, given.etag)
    require_digest(found, given.content_digest)
    return found
