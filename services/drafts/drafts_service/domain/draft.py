"""A draft and the changes that users make to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256

from drafts_service.domain.content import Body, ChannelText, Content
from drafts_service.domain.post_job import JobState, PostJob, Progress
from drafts_service.domain.target import Target
from servicekit.faults import Conflict, NotFound, Refused

PATIENCE = timedelta(seconds=5)
"""How long a withdrawal is left to whoever is asking for it, before somebody else asks again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Bound to a content: of any other digest it says nothing."""

    digest: str
    time: datetime
    approver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """Revisions below this one may have been approved and must not go out; Publisher has yet to confirm that."""

    below: int
    due: datetime  # when it is asked next, unless the call that made it has been answered by then


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    organization_id: str
    id: str
    body: Body
    targets: tuple[Target, ...]
    create_time: datetime
    update_time: datetime
    approval: Approval | None = None
    revision: int = 1  # grows with content and targets
    version: int = 1  # grows with every announcement
    edit_version: int = 1  # grows with every change that a user makes; never by events
    withdrawal: Withdrawal | None = None  # None: no older text can start
    progress: Progress = field(default_factory=Progress)

    @property
    def etag(self) -> str:
        # The creation time keeps a draft that took over a deleted one's id apart from it.
        edition = f"{self.id} {self.create_time.isoformat()} {self.edit_version}"
        return sha256(edition.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a user changes; None leaves a thing as it is."""

    text: str | None = None
    hashtags: tuple[str, ...] | None = None
    channel_texts: tuple[ChannelText, ...] | None = None
    targets: tuple[Target, ...] | None = None

    def of(self, content: Content) -> Content:
        return Content(
            text=content.text if self.text is None else self.text,
            hashtags=content.hashtags if self.hashtags is None else self.hashtags,
            channel_texts=content.channel_texts if self.channel_texts is None else self.channel_texts,
        )


def edited(draft: Draft, *, body: Body, targets: tuple[Target, ...], now: datetime) -> Draft:
    """The draft with this content and these targets (in any order); itself when that changes nothing."""
    if body.digest == draft.body.digest and set(targets) == set(draft.targets):
        return draft
    revision = draft.revision + 1
    may_be_on_its_way = draft.approval is not None or draft.withdrawal is not None
    return replace(
        draft,
        body=body,
        targets=targets,
        approval=draft.approval if body.digest == draft.body.digest else None,
        revision=revision,
        version=draft.version + 1,
        edit_version=draft.edit_version + 1,
        withdrawal=Withdrawal(below=revision, due=now + PATIENCE) if may_be_on_its_way else None,
        update_time=now,
    )


def approved(draft: Draft, *, approver: str, now: datetime) -> Draft:
    """The draft with its content approved; itself when it is already."""
    if draft.approval is not None:
        return draft
    return replace(
        draft,
        approval=Approval(digest=draft.body.digest, time=now, approver=approver),
        version=draft.version + 1,
        edit_version=draft.edit_version + 1,
        update_time=now,
    )


def found(draft: Draft | None, draft_id: str) -> Draft:
    """Another organization's draft and one that never was look the same."""
    if draft is None:
        raise NotFound("DRAFT_NOT_FOUND", "there is no such draft", metadata={"draft_id": draft_id})
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
            "the draft's content is not the one to be approved",
            metadata={"draft_id": draft.id, "content_digest": draft.body.digest},
        )


def require_changeable(draft: Draft, jobs: Iterable[PostJob]) -> None:
    gone_out = next((job for job in jobs if job.state is JobState.PUBLISHED), None)
    if gone_out:
        raise Refused(
            "DRAFT_PUBLISHED",
            "a target of the draft has gone out: it can no longer be changed",
            metadata={"draft_id": draft.id, "post_job_id": gone_out.id},
        )
