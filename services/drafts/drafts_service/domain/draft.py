"""A draft and the changes that users make to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256

from drafts_service.domain.account import Obstacles
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
    """Publisher is being asked to forbid the revisions below this one; it may have done so already.

    While it stands, the draft is as it was before the edit that wants it. It ends with the edit, or with the same draft
    under a revision that is not forbidden.
    """

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
    revision: int = 1  # grows with content and targets, and when an edit was not carried out
    version: int = 1  # grows with every announcement
    edit_version: int = 1  # grows with every change that a user makes; never by events
    withdrawal: Withdrawal | None = None
    exposed: bool = False  # a text of an earlier revision may be in flight or out: Publisher has not said otherwise
    progress: Progress = field(default_factory=Progress)
    obstacles: Obstacles = field(default_factory=dict, compare=False)  # known of its accounts when it was read

    @property
    def may_be_out(self) -> bool:
        """A text, this one or an earlier one: Publisher has to be asked before it is replaced."""
        return self.exposed or self.approval is not None

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
    return replace(
        draft,
        body=body,
        targets=targets,
        approval=draft.approval if body.digest == draft.body.digest else None,
        revision=draft.revision + 1,
        version=draft.version + 1,
        edit_version=draft.edit_version + 1,
        withdrawal=None,
        update_time=now,
    )


def withdrawing(draft: Draft, *, below: int, now: datetime) -> Draft:
    """The draft with the intention to have its older revisions forbidden."""
    return replace(draft, withdrawal=Withdrawal(below=below, due=now + PATIENCE))


def postponed(draft: Draft, due: datetime) -> Draft:
    """The draft whose withdrawal is asked for again at this time."""
    assert draft.withdrawal
    return replace(draft, withdrawal=replace(draft.withdrawal, due=due))


def kept(draft: Draft, *, below: int) -> Draft:
    """The draft after a withdrawal that no edit follows: the same under a revision that is not forbidden."""
    if draft.withdrawal is None or draft.withdrawal.below > below:
        return draft
    if below <= draft.revision:
        return replace(draft, withdrawal=None)
    return replace(draft, revision=below, version=draft.version + 1, withdrawal=None)


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
    out = [job for job in jobs if job.state is JobState.PUBLISHED]
    if out:
        first = min(out, key=lambda job: (job.publish_time or draft.create_time, job.id))
        raise Refused(
            "DRAFT_PUBLISHED",
            "a target of the draft has gone out: it can no longer be changed",
            metadata={
                "draft_id": draft.id,
                "post_job_id": first.id,
                "external_url": first.external_url,
                "publish_time": first.publish_time.isoformat() if first.publish_time else "",
            },
        )
