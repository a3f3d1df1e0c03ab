"""Lists of LinkedIn: posts of a page and comments on a post, and what tells one of them from the others."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.answers import number_in, object_in
from publisher_service.adapters.providers.linkedin_api import (
    SKEW,
    is_comment,
    is_post,
    text_of,
    url_of,
    url_of_comment,
)
from publisher_service.adapters.providers.linkedin_media import ids_of, media_content
from publisher_service.adapters.providers.linkedin_text import is_of
from publisher_service.domain.outcome import Absent, Finding, Found, NoProof
from servicekit.record import record


@record(frozen=True, slots=True, kw_only=True)
class Seen:
    """An entry of a list: when it was changed last, and whether it is the post; None as a hit proves nothing."""

    changed: datetime
    is_hit: bool = False
    hit: Found | None = None


Judge = Callable[[object], Seen | None]
"""Returns what an entry of a list is; None if it cannot be read."""


def is_recognizable(post: Post) -> bool:
    """Returns whether there is a text, or else media that were uploaded for this post alone."""
    return bool(text_of(post) or media_content(post))


def post_of(post: Post, page: str) -> Judge:
    """Returns what tells the post from others of the page."""
    since, text, media = post.since, text_of(post), ids_of(media_content(post))
    assert since is not None

    def has_content(element: dict[str, Any]) -> bool:
        commentary = element.get("commentary")
        if not text:
            return ids_of(element.get("content")) == media
        return isinstance(commentary, str) and is_of(commentary, text)

    def judge(element: object) -> Seen | None:
        if not isinstance(element, dict) or (made := _time(element.get("createdAt"))) is None:
            return None
        changed = _time(element.get("lastModifiedAt")) or made
        state = element.get("lifecycleState")
        is_this = element.get("author") == page and has_content(element)
        if not is_this or made < since - SKEW or state in ("PUBLISH_FAILED", "DRAFT"):
            return Seen(changed=changed)
        urn = element.get("id")
        if state != "PUBLISHED" or not isinstance(urn, str) or not is_post(urn):
            return Seen(changed=changed, is_hit=True)
        return Seen(
            changed=changed, is_hit=True, hit=Found(external_id=urn, external_url=url_of(urn), publish_time=made)
        )

    return judge


def comment_of(post: Post, page: str) -> Judge:
    """Returns what tells the comment from others."""
    since = post.since
    assert since is not None

    def judge(element: object) -> Seen | None:
        if not isinstance(element, dict) or (made := _time(object_in(element, "created").get("time"))) is None:
            return None
        # Comments have no known order, so none of them ends the search.
        changed = datetime.max.replace(tzinfo=UTC)
        text = object_in(element, "message").get("text")
        if element.get("actor") != page or text != post.text or made < since - SKEW:
            return Seen(changed=changed)
        urn = element.get("commentUrn")
        if not isinstance(urn, str) or not is_comment(urn):
            return Seen(changed=changed, is_hit=True)
        url = url_of_comment(post.follows, urn)
        return Seen(changed=changed, is_hit=True, hit=Found(external_id=urn, external_url=url, publish_time=made))

    return judge


def verdict(hits: list[Found | None]) -> Finding:
    match hits:
        case []:
            return Absent()
        case [Found() as found]:
            return found
        case [None]:
            return NoProof(message="LinkedIn has taken the post, and has not published it yet")
        case _:
            return NoProof(message=f"the page has {len(hits)} posts with this text")


def _time(milliseconds: object) -> datetime | None:
    number = number_in({"time": milliseconds}, "time")
    if number is None or not 0 <= number < 1 << 42:
        return None
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=number)
