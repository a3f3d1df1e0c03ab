"""Recognizes a post, or a comment, in a list of those that Meta shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from unicodedata import normalize

from publisher_service.adapters.providers.answers import is_post_name, list_in, object_in, text_in, time_of
from publisher_service.domain.outcome import Absent, Finding, Found, NoProof
from servicekit.record import record

# Meta's clock may differ from our own by this much.
SKEW: Final = timedelta(minutes=1)


@record(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A post or a comment as a list shows it."""

    external_id: str
    external_url: str
    text: str
    time: datetime | None
    # The ids of its photos and videos.
    media: frozenset[str] = frozenset()
    # False: somebody else may have written it.
    is_own: bool = True


IsOwn = Callable[[Mapping[str, Any]], bool | None]
"""Returns whether the account has written an entry; None if that is not certain."""


def sightings(
    entries: Sequence[object], *, text: str, time: str, url: str, is_own: IsOwn | None = None
) -> Sequence[Sighting] | None:
    """Reads entries, whose fields have these names; those that others have written are left out.

    Returns None if one of them cannot be read: it may be the post.
    """
    seen: list[Sighting] = []
    for entry in entries:
        if not isinstance(entry, dict) or not is_post_name(entry.get("id")):
            return None
        own = is_own is None or is_own(entry)
        if own is False:
            continue
        words = entry.get(text)
        seen.append(
            Sighting(
                external_id=entry["id"],
                external_url=text_in(entry, url),
                text=words if isinstance(words, str) else "",
                time=time_of(entry.get(time)),
                media=frozenset(_media(object_in(entry, "attachments"))),
                is_own=own is True,
            )
        )
    return seen


def recognized(seen: Sequence[Sighting], *, text: str, since: datetime, media: frozenset[str] = frozenset()) -> Finding:
    """Returns what the list proves about a post with this text and these media, sent at `since` or later.

    One that carries our media is it. Otherwise exactly one with the very text is it, if nothing speaks against it.
    """
    recent = [each for each in seen if each.time is None or each.time >= since - SKEW]
    with_media = [each for each in recent if each.media & media]
    if not with_media and not text:
        silent = any(each.media and not each.text for each in recent)
        return NoProof(message="a post without a text may be this one") if silent or not media else Absent()
    hits = with_media or [each for each in recent if each.text == text]
    if not hits:
        alike = any(_loosely(each.text) == _loosely(text) for each in recent)
        return NoProof(message="a post differs from this one in its spaces alone") if alike else Absent()
    (hit, *more) = [each for each in hits if each.is_own] or hits
    if more:
        return NoProof(message=f"the account has {1 + len(more)} posts with this text")
    if not hit.is_own:
        return NoProof(message="somebody else may have written what has this text")
    if hit.time is None or (media and hit.media and not with_media):
        return NoProof(message="a post with this text has no readable time, or other media")
    return Found(
        external_id=hit.external_id,
        external_url=hit.external_url,
        publish_time=hit.time,
        is_by_text=not with_media,
    )


def _loosely(text: str) -> str:
    return " ".join(normalize("NFC", text).split())


def _media(attachments: Mapping[str, Any]) -> Iterator[str]:
    """Yields the ids of media; several in one post are attachments of an attachment."""
    for entry in list_in(attachments, "data") or ():
        if not isinstance(entry, dict):
            continue
        identifier = object_in(entry, "target").get("id")
        if isinstance(identifier, str):
            yield identifier
        for inner in list_in(object_in(entry, "subattachments"), "data") or ():
            if isinstance(inner, dict) and isinstance(object_in(inner, "target").get("id"), str):
                yield inner["target"]["id"]
