"""Media of a draft: facts of the bytes, which pin them, and problems."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from channels.validation import KnownMedia
from drafts_service.domain.content import Content, Media, MediaFacts
from drafts_service.domain.target import Target
from servicekit.faults import InvalidRequest, Unavailable, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaProblem:
    """A reason for which media cannot be used. One that may pass says nothing about the media itself."""

    reason: str
    message: str
    may_pass: bool


Inspected = Mapping[str, MediaFacts | MediaProblem]
"""By address."""


class MediaUnchecked(Unavailable):
    """The bytes of some media of the content are not known, so it cannot be approved yet."""

    def __init__(self, content: Content, targets: Sequence[Target]) -> None:
        super().__init__("MEDIA_UNCHECKED", "the media of the draft could not be fetched yet; try again in a moment")
        self.content = content
        self.targets = targets


def unpinned(content: Content) -> list[str]:
    """Returns the addresses of the media whose bytes are not known."""
    return [each.url for each in content.all_media if each.facts is None]


def facts_of(content: Content) -> dict[str, MediaFacts]:
    """Returns what is known of the media, by address."""
    return {each.url: each.facts for each in content.all_media if each.facts is not None}


def pinned(content: Content, found: Inspected) -> Content:
    """Returns the content with the facts that were found; other media keeps what was known of it."""
    return _with_each(content, lambda media: _pinned(media, found.get(media.url))) if found else content


def without_facts(content: Content) -> Content:
    """Returns the content as somebody gives it who has not seen the bytes."""
    return _with_each(content, lambda media: replace(media, facts=None))


def with_facts_of(content: Content, before: Content) -> Content:
    """Returns the content with the facts of media that `before` has, too, where it has none itself."""
    known = facts_of(before)
    return _with_each(content, lambda media: media if media.facts else replace(media, facts=known.get(media.url)))


def require_usable(content: Content, found: Inspected) -> None:
    """Raises MEDIA_REFUSED with each problem that does not pass by itself."""
    problems = [
        Violation(field=f"{field}.url", description=f"{problem.message} ({problem.reason})")
        for field, each in _placed(content)
        if isinstance(problem := found.get(each.url), MediaProblem) and not problem.may_pass
    ]
    if problems:
        first = problems[0]
        raise InvalidRequest(
            "MEDIA_REFUSED",
            f"{first.field}: {first.description}",
            metadata={"field": first.field},
            violations=tuple(problems),
        )


def known_media(media: Media) -> KnownMedia:
    """Returns the media as far as rules of channels ask about it."""
    facts = media.facts
    if facts is None:
        return KnownMedia()
    return KnownMedia(
        kind=facts.kind,
        content_type=facts.content_type,
        size=facts.size,
        width=facts.width or None,
        height=facts.height or None,
        duration=facts.duration,
    )


def _pinned(media: Media, found: MediaFacts | MediaProblem | None) -> Media:
    return replace(media, facts=found) if isinstance(found, MediaFacts) else media


def _with_each(content: Content, change: Callable[[Media], Media]) -> Content:
    """Returns the content with each of its media changed; the same one if there is none."""
    if not content.all_media:
        return content
    return replace(
        content,
        media=tuple(map(change, content.media)),
        channel_media=tuple(replace(each, media=tuple(map(change, each.media))) for each in content.channel_media),
    )


def _placed(content: Content) -> Iterator[tuple[str, Media]]:
    """Yields the media of all channels, each with its field."""
    for index, each in enumerate(content.media):
        yield f"draft.content.media[{index}]", each
    for number, of_channel in enumerate(content.channel_media):
        for index, each in enumerate(of_channel.media):
            yield f"draft.content.channel_media[{number}].media[{index}]", each
