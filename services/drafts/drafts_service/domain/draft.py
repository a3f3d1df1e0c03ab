"""A draft and the changes that users make to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from drafts_service.domain.account import AccountKey, Obstacles, Providers
from drafts_service.domain.content import Body, ChannelMedia, ChannelText, Content, FollowUp, Media, MediaFacts
from drafts_service.domain.post_job import FoldedState, JobState, PostJob
from drafts_service.domain.slot_refusal import SlotRefusal, merged
from drafts_service.domain.target import Target
from servicekit.faults import Conflict, InvalidField, NotFound, Refused

HORIZON = timedelta(days=730)
"""How far ahead a draft may ask for a time."""

# How far in the past a new requested time may lie, because clocks differ and requests take time.
_TOLERANCE = timedelta(minutes=1)

DraftKey = tuple[str, str]
"""Organization and draft id."""

PATIENCE = timedelta(seconds=5)
"""How long the caller of UpdateDraft may take to complete a withdrawal before the loop `withdrawals` takes over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Holds what a draft asks of the queues of its accounts, and its brand; no approval is bound to either."""

    requested_time: datetime | None = None
    category_id: str = ""
    brand_id: str = ""


NO_PLACEMENT = Placement()


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDraft:
    """Holds the values that a caller gives for a draft; it gets an id if `id` is empty."""

    id: str
    content: Content
    targets: tuple[Target, ...]
    placement: Placement = NO_PLACEMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenApproval:
    """Names the draft to approve. An empty digest or etag is ignored; otherwise the draft must have it."""

    draft_id: str
    content_digest: str
    etag: str
    approver: str
    # What was found about media whose bytes are not known yet, by address.
    media: Mapping[str, MediaFacts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A user's approval of the content with this digest, and of no other."""

    digest: str
    time: datetime
    approver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """A pending request to Publisher to forbid the revisions below `below`; Publisher may have done so already.

    While it is pending, the draft is as it was before the edit that needs it. It ends when the edit is made, or when
    the draft is saved unchanged under a revision that is not forbidden.
    """

    below: int
    due: datetime  # when the loop repeats the request, unless it has ended by then


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    organization_id: str
    id: str
    body: Body
    targets: tuple[Target, ...]
    create_time: datetime
    update_time: datetime
    approval: Approval | None = None
    revision: int = 1  # grows with content and targets, and when an edit is given up
    version: int = 1  # grows with every announcement
    edit_version: int = 1  # grows with every change by a user, never with events
    withdrawal: Withdrawal | None = None
    exposed: bool = False  # a text of an earlier revision may be in flight or out
    placement: Placement = NO_PLACEMENT
    refusals: tuple[SlotRefusal, ...] = ()
    folded: FoldedState = field(default_factory=FoldedState)
    # Of its accounts, as of the read.
    obstacles: Obstacles = field(default_factory=dict, compare=False)
    providers: Providers = field(default_factory=dict, compare=False)

    @property
    def key(self) -> DraftKey:
        return self.organization_id, self.id

    @property
    def accounts(self) -> set[AccountKey]:
        return {(self.organization_id, target.social_account_id) for target in self.targets}

    @property
    def may_be_out(self) -> bool:
        """True if any text may be in flight or out, so Publisher has to withdraw it before it is replaced."""
        return self.exposed or self.approval is not None

    @property
    def etag(self) -> str:
        # The creation time makes a draft that reuses a deleted draft's id have other etags.
        edition = f"{self.id} {self.create_time.isoformat()} {self.edit_version}"
        return sha256(edition.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftView:
    """A draft with the newest known states of its post jobs: the answer of every use case."""

    draft: Draft
    jobs: Sequence[PostJob]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedDraft(DraftView):
    in_flight: tuple[str, ...]
    """Post jobs whose older text is being sent or may be out."""


@dataclass(frozen=True, slots=True)
class RequestedTime:
    """A new requested time; None clears it."""

    time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The fields that a user changes; None leaves a field as it is."""

    text: str | None = None
    hashtags: tuple[str, ...] | None = None
    channel_texts: tuple[ChannelText, ...] | None = None
    title: str | None = None
    link: str | None = None
    media: tuple[Media, ...] | None = None
    follow_ups: tuple[FollowUp, ...] | None = None
    channel_media: tuple[ChannelMedia, ...] | None = None
    targets: tuple[Target, ...] | None = None
    requested_time: RequestedTime | None = None
    category_id: str | None = None
    brand_id: str | None = None

    @property
    def named_media(self) -> list[Media]:
        """The media that the user names."""
        return [*(self.media or ()), *(each for one in self.channel_media or () for each in one.media)]

    @property
    def is_of_text(self) -> bool:
        """True if the user names content or targets, which Publisher may have to withdraw first."""
        return bool(self._of_content) or self.targets is not None

    def applied_to(self, content: Content) -> Content:
        return replace(content, **self._of_content)

    @property
    def _of_content(self) -> dict[str, Any]:
        return {field.name: value for field in fields(Content) if (value := getattr(self, field.name)) is not None}

    def applied_to_placement(self, placement: Placement) -> Placement:
        return Placement(
            requested_time=placement.requested_time if self.requested_time is None else self.requested_time.time,
            category_id=placement.category_id if self.category_id is None else self.category_id,
            brand_id=placement.brand_id if self.brand_id is None else self.brand_id,
        )


def edited(
    draft: Draft, *, body: Body, targets: tuple[Target, ...], placement: Placement | None = None, now: datetime
) -> Draft:
    """Returns the draft with these values (the targets in any order), or `draft` itself if nothing changes.

    A `placement` of None stays as it is. Only content and targets have revisions: another placement leaves the
    approval and a pending withdrawal alone.
    """
    placement = draft.placement if placement is None else placement
    is_rewritten = body.digest != draft.body.digest or set(targets) != set(draft.targets)
    if not is_rewritten and placement == draft.placement:
        return draft
    changed = replace(
        draft,
        placement=placement,
        refusals=merged(draft.refusals, (), requested_time=placement.requested_time, accounts=_accounts(targets)),
        version=draft.version + 1,
        edit_version=draft.edit_version + 1,
        update_time=now,
    )
    if not is_rewritten:
        return changed
    return replace(
        changed,
        body=body,
        targets=targets,
        approval=draft.approval if body.digest == draft.body.digest else None,
        revision=draft.revision + 1,
        withdrawal=None,
    )


def refused(draft: Draft, refusals: Iterable[SlotRefusal]) -> Draft:
    """Returns the draft with the refusals that are about the time it asks for now, the newest of each account."""
    accounts = _accounts(draft.targets)
    requested_time = draft.placement.requested_time
    return replace(draft, refusals=merged(draft.refusals, refusals, requested_time=requested_time, accounts=accounts))


def checked_placement(placement: Placement, *, before: Placement, now: datetime) -> Placement:
    """Refuses a new time that lies in the past or too far ahead; one that has passed meanwhile may stay."""
    time = placement.requested_time
    if time is None or time == before.requested_time:
        return placement
    if time < now - _TOLERANCE:
        raise InvalidField("draft.requested_time", "is more than a minute ago")
    if time > now + HORIZON:
        raise InvalidField("draft.requested_time", f"is more than {HORIZON.days} days ahead")
    return placement


def _accounts(targets: Iterable[Target]) -> set[str]:
    return {target.social_account_id for target in targets}


def withdrawing(draft: Draft, *, below: int, now: datetime) -> Draft:
    """Returns the draft with a pending withdrawal of the revisions below `below`."""
    return replace(draft, withdrawal=Withdrawal(below=below, due=now + PATIENCE))


def postponed(draft: Draft, due: datetime) -> Draft:
    """Returns the draft with the next request for its withdrawal due at `due`."""
    assert draft.withdrawal
    return replace(draft, withdrawal=replace(draft.withdrawal, due=due))


def edit_given_up(draft: Draft, *, below: int) -> Draft:
    """Ends the withdrawal without the edit: returns the same draft under a revision that is not forbidden."""
    if draft.withdrawal is None or draft.withdrawal.below > below:
        return draft
    if below <= draft.revision:
        return replace(draft, withdrawal=None)
    return replace(draft, revision=below, version=draft.version + 1, withdrawal=None)


def approved(draft: Draft, *, approver: str, now: datetime) -> Draft:
    """Returns the draft with its content approved, or `draft` itself if it was approved before."""
    if draft.approval is not None:
        return draft
    return replace(
        draft,
        approval=Approval(digest=draft.body.digest, time=now, approver=approver),
        version=draft.version + 1,
        edit_version=draft.edit_version + 1,
        update_time=now,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTargets:
    """A draft without its content."""

    key: DraftKey
    revision: int
    targets: tuple[Target, ...]
    category_id: str


def require_draft(draft: Draft | None, key: DraftKey) -> Draft:
    """Raises NotFound for None. A draft of another organization is indistinguishable from one that does not exist."""
    if draft is None:
        raise NotFound("DRAFT_NOT_FOUND", "there is no such draft", metadata={"draft_id": key[1]})
    return draft


def require_etag(draft: Draft, etag: str) -> None:
    if etag and etag != draft.etag:
        raise Conflict(
            "ETAG_MISMATCH",
            "the draft has been changed since it was read",
            metadata={"draft_id": draft.id},
        )


def require_digest(draft: Draft, digest: str) -> None:
    if digest and digest != draft.body.digest:
        raise Conflict(
            "DIGEST_MISMATCH",
            "the draft has another content than the one to be approved",
            metadata={"draft_id": draft.id, "content_digest": draft.body.digest},
        )


def require_changeable(draft: Draft, jobs: Iterable[PostJob]) -> None:
    published = [job for job in jobs if job.state is JobState.PUBLISHED]
    if published:
        first = min(published, key=lambda job: (job.publish_time or draft.create_time, job.id))
        raise Refused(
            "DRAFT_PUBLISHED",
            "the draft cannot be changed: one of its targets has been published",
            metadata={
                "draft_id": draft.id,
                "post_job_id": first.id,
                "external_url": first.external_url,
                "publish_time": first.publish_time.isoformat() if first.publish_time else "",
            },
        )
