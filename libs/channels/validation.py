"""Checks of a post against the rules of its channel: pure. Each violation names its field, its rule and the limit."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, assert_never

from channels.rules import ChannelRules, ImageRule, LinkPlace, MediaRule, TextRule, Unit, VideoRule
from channels.texts import is_blank, with_hashtags, with_link


class Rule(StrEnum):
    """The name of a rule that is broken."""

    TEXT_REQUIRED = "TEXT_REQUIRED"
    TEXT_TOO_LONG = "TEXT_TOO_LONG"
    TITLE_REQUIRED = "TITLE_REQUIRED"
    TITLE_TOO_LONG = "TITLE_TOO_LONG"
    TOO_MANY_HASHTAGS = "TOO_MANY_HASHTAGS"
    TOO_MANY_MENTIONS = "TOO_MANY_MENTIONS"
    MEDIA_REQUIRED = "MEDIA_REQUIRED"
    TOO_MANY_MEDIA = "TOO_MANY_MEDIA"
    MEDIA_MIXED = "MEDIA_MIXED"
    MEDIA_KIND = "MEDIA_KIND"
    MEDIA_TYPE = "MEDIA_TYPE"
    MEDIA_TOO_LARGE = "MEDIA_TOO_LARGE"
    MEDIA_RATIO = "MEDIA_RATIO"
    MEDIA_DIMENSIONS = "MEDIA_DIMENSIONS"
    MEDIA_DURATION = "MEDIA_DURATION"
    FOLLOW_UPS_NOT_TAKEN = "FOLLOW_UPS_NOT_TAKEN"
    TOO_MANY_FOLLOW_UPS = "TOO_MANY_FOLLOW_UPS"
    DESTINATION_REQUIRED = "DESTINATION_REQUIRED"
    DESTINATION_MALFORMED = "DESTINATION_MALFORMED"
    DESTINATION_NOT_TAKEN = "DESTINATION_NOT_TAKEN"
    # These two break nothing: what is not shown is left out.
    TEXT_NOT_SHOWN = "TEXT_NOT_SHOWN"
    LINK_NOT_SHOWN = "LINK_NOT_SHOWN"


WARNINGS: Final = frozenset({Rule.TEXT_NOT_SHOWN, Rule.LINK_NOT_SHOWN})


class MediaKind(StrEnum):
    """Kinds of media."""

    IMAGE = "IMAGE"
    VIDEO = "VIDEO"
    DOCUMENT = "DOCUMENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMedia:
    """Media as far as rules ask about it. Facts that nobody knows yet are None, and break no rule."""

    kind: MediaKind | None = None
    content_type: str = ""
    size: int | None = None
    width: int | None = None
    height: int | None = None
    duration: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPost:
    """A draft as one channel gets it: with its own text or the common one, and the hashtags."""

    text: str
    # Where the text stands, for violations: `text`, or the text of the channel.
    text_field: str = "text"
    title: str = ""
    link: str = ""
    media: Sequence[KnownMedia] = ()
    # Where the media stands, for violations: `media`, or the media of the channel.
    media_field: str = "media"
    # The follow-ups on this channel, each with its place.
    follow_ups: Sequence[tuple[str, str]] = ()
    destination: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that is broken: its field, the limit as it is shown to people, and what was found."""

    field: str
    rule: Rule
    message: str

    @property
    def is_warning(self) -> bool:
        return self.rule in WARNINGS


def channel_post(
    channel: str,
    *,
    text: str,
    hashtags: Sequence[str],
    channel_texts: Sequence[tuple[str, str]],
    title: str,
    link: str,
    media: Sequence[KnownMedia],
    channel_media: Sequence[tuple[str, Sequence[KnownMedia]]],
    follow_ups: Sequence[tuple[str, str]],
    destination: str,
) -> ChannelPost:
    """Returns what a channel gets of a draft. Pairs are of a channel, and of what it has of its own."""
    places = [each for each, _ in channel_media]
    own_media = places.index(channel) if channel in places else -1
    own = {each: (index, own_text) for index, (each, own_text) in enumerate(channel_texts)}
    index, shown = own.get(channel, (-1, text))
    return ChannelPost(
        text=with_hashtags(shown, hashtags),
        text_field=f"channel_texts[{index}].text" if index >= 0 else "text",
        title=title,
        link=link,
        media=channel_media[own_media][1] if own_media >= 0 else media,
        media_field=f"channel_media[{own_media}].media" if own_media >= 0 else "media",
        follow_ups=[(f"follow_ups[{n}]", each) for n, (place, each) in enumerate(follow_ups) if place == channel],
        destination=destination,
    )


_HASHTAG: Final = re.compile(r"(?<![\w#&])#\w+")
_MENTION: Final = re.compile(r"(?<![\w@])@\w[\w.]*")
# The share of a ratio that rounding to whole pixels may change.
_SLACK: Final = 0.005


def violations(post: ChannelPost, rules: ChannelRules) -> Iterator[Violation]:
    """Yields the rules that the post breaks, in the order of its fields."""
    yield from _of_text(post, rules)
    if rules.title is not None:
        yield from _of_length("title", post.title, rules.title, Rule.TITLE_REQUIRED, Rule.TITLE_TOO_LONG)
    if post.link and not rules.takes_link:
        yield Violation(field="link", rule=Rule.LINK_NOT_SHOWN, message="the channel shows no link: it is left out")
    yield from _of_media(post.media_field, post.media, rules.media)
    yield from _of_follow_ups(post.follow_ups, rules)
    yield from _of_destination(post.destination, rules)


def length(text: str, unit: Unit) -> int:
    """Returns the length of a text as the provider counts it."""
    match unit:
        case Unit.CHARACTERS:
            return len(text)
        case Unit.UTF16:
            return len(text) + sum(each > "\uffff" for each in text)
        case Unit.BYTES:
            return len(text.encode(errors="surrogatepass"))


def _of_text(post: ChannelPost, rules: ChannelRules) -> Iterator[Violation]:
    field, text = post.text_field, _as_sent(post, rules.link_in_text)
    if not rules.text.is_shown:
        if text:
            yield Violation(field=field, rule=Rule.TEXT_NOT_SHOWN, message="the channel shows no text: it is left out")
        return
    rule = rules.caption if rules.caption is not None and post.media else rules.text
    required = Rule.TEXT_REQUIRED
    if is_blank(text) and not (post.media or rule.is_required):
        yield Violation(field=field, rule=required, message="must not be empty")
    yield from _of_length(field, text, rule, required, Rule.TEXT_TOO_LONG)
    yield from _of_count(field, _HASHTAG, text, rules.most_hashtags, Rule.TOO_MANY_HASHTAGS, "hashtags")
    yield from _of_count(field, _MENTION, text, rules.most_mentions, Rule.TOO_MANY_MENTIONS, "mentions")


def _as_sent(post: ChannelPost, place: LinkPlace) -> str:
    match place:
        case LinkPlace.NEVER:
            return post.text
        case LinkPlace.ALWAYS:
            return with_link(post.text, post.link)
        case LinkPlace.BESIDE_MEDIA:
            return with_link(post.text, post.link) if post.media else post.text
        case _:
            assert_never(place)


def _of_length(field: str, text: str, rule: TextRule, required: Rule, too_long: Rule) -> Iterator[Violation]:
    if rule.is_required and is_blank(text):
        yield Violation(field=field, rule=required, message="must not be empty")
    # A code point is one unit at least, so most texts need no counting.
    if len(text) * 4 > rule.most and (found := length(text, rule.unit)) > rule.most:
        unit = {Unit.CHARACTERS: "characters", Unit.UTF16: "UTF-16 code units", Unit.BYTES: "bytes"}[rule.unit]
        yield Violation(field=field, rule=too_long, message=f"must have at most {rule.most} {unit}, and has {found}")


def _of_count(
    field: str, pattern: re.Pattern[str], text: str, most: int | None, rule: Rule, what: str
) -> Iterator[Violation]:
    if most is None:
        return
    found = sum(1 for _ in pattern.finditer(text))
    if found > most:
        yield Violation(field=field, rule=rule, message=f"must have at most {most} {what}, and has {found}")


def _of_media(field: str, media: Sequence[KnownMedia], rule: MediaRule | None) -> Iterator[Violation]:
    most, least = (rule.most, rule.least) if rule else (0, 0)
    if len(media) < least:
        yield Violation(field=field, rule=Rule.MEDIA_REQUIRED, message=f"must have at least {least}")
    if len(media) > most:
        message = f"must have at most {most}, and has {len(media)}" if most else "the channel takes no media"
        yield Violation(field=field, rule=Rule.TOO_MANY_MEDIA, message=message)
    if rule is None:
        return
    singles = sum(each.kind in {MediaKind.VIDEO, MediaKind.DOCUMENT} for each in media)
    if not rule.may_mix and singles and len(media) > 1:
        yield Violation(field=field, rule=Rule.MEDIA_MIXED, message="a video or document must be the only media")
    known = {each.kind for each in media if each.kind is not None}
    if rule.documents_apart and MediaKind.DOCUMENT in known and len(known) > 1:
        yield Violation(field=field, rule=Rule.MEDIA_MIXED, message="documents must stand beside documents alone")
    yield from _of_sum(field, media, rule.most_bytes_together)
    for index, each in enumerate(media):
        yield from _of_one(f"{field}[{index}]", each, rule)


def _of_sum(field: str, media: Sequence[KnownMedia], most: int | None) -> Iterator[Violation]:
    found = sum(each.size or 0 for each in media)
    if most is not None and len(media) > 1 and found > most:
        message = f"must have at most {most} bytes together, and have {found}"
        yield Violation(field=field, rule=Rule.MEDIA_TOO_LARGE, message=message)


def _of_one(field: str, media: KnownMedia, rule: MediaRule) -> Iterator[Violation]:
    of_kind = {None: None, MediaKind.IMAGE: rule.image, MediaKind.VIDEO: rule.video, MediaKind.DOCUMENT: rule.document}[
        media.kind
    ]
    if of_kind is None:
        if media.kind is not None:
            yield Violation(
                field=field, rule=Rule.MEDIA_KIND, message=f"must be {_kinds(rule)}, and is a {media.kind.lower()}"
            )
        return
    if media.content_type and media.content_type not in of_kind.types:
        taken = ", ".join(of_kind.types)
        yield Violation(field=field, rule=Rule.MEDIA_TYPE, message=f"must be {taken}, and is {media.content_type}")
    if media.size is not None and media.size > of_kind.most_bytes:
        message = f"must have at most {of_kind.most_bytes} bytes, and has {media.size}"
        yield Violation(field=field, rule=Rule.MEDIA_TOO_LARGE, message=message)
    if isinstance(of_kind, ImageRule | VideoRule):
        yield from _of_ratio(field, media, of_kind)
    if isinstance(of_kind, ImageRule):
        yield from _of_dimensions(field, media, of_kind)
    if isinstance(of_kind, VideoRule):
        yield from _of_duration(field, media, of_kind)


def _of_ratio(field: str, media: KnownMedia, rule: ImageRule | VideoRule) -> Iterator[Violation]:
    if not (media.width and media.height):
        return
    ratio = media.width / media.height
    too_narrow = rule.least_ratio is not None and ratio < rule.least_ratio * (1 - _SLACK)
    too_wide = rule.most_ratio is not None and ratio > rule.most_ratio * (1 + _SLACK)
    if too_narrow or too_wide:
        found = f"{media.width} x {media.height} pixels ({ratio:.2f})"
        message = f"width divided by height must be {_span(rule.least_ratio, rule.most_ratio)}, and it has {found}"
        yield Violation(field=field, rule=Rule.MEDIA_RATIO, message=message)


def _of_dimensions(field: str, media: KnownMedia, rule: ImageRule) -> Iterator[Violation]:
    if not (media.width and media.height):
        return
    if rule.most_pixels is not None and media.width * media.height > rule.most_pixels:
        message = f"must have at most {rule.most_pixels} pixels, and has {media.width * media.height}"
        yield Violation(field=field, rule=Rule.MEDIA_DIMENSIONS, message=message)
    if rule.most_sides is not None and media.width + media.height > rule.most_sides:
        message = f"width plus height must be at most {rule.most_sides} pixels, and are {media.width + media.height}"
        yield Violation(field=field, rule=Rule.MEDIA_DIMENSIONS, message=message)


def _of_duration(field: str, media: KnownMedia, rule: VideoRule) -> Iterator[Violation]:
    if media.duration is None:
        return
    too_short = rule.least_duration is not None and media.duration < rule.least_duration
    too_long = rule.most_duration is not None and media.duration > rule.most_duration
    if too_short or too_long:
        least, most = map(_seconds, (rule.least_duration, rule.most_duration))
        message = f"must last {_span(least, most)} seconds, and lasts {media.duration.total_seconds():g}"
        yield Violation(field=field, rule=Rule.MEDIA_DURATION, message=message)


def _of_follow_ups(follow_ups: Sequence[tuple[str, str]], rules: ChannelRules) -> Iterator[Violation]:
    taken = rules.follow_ups
    if taken is None:
        for field, _ in follow_ups:
            message = "the channel takes neither comments nor threads"
            yield Violation(field=field, rule=Rule.FOLLOW_UPS_NOT_TAKEN, message=message)
        return
    if len(follow_ups) > taken.most:
        message = f"must be at most {taken.most} on the channel, and are {len(follow_ups)}"
        yield Violation(field="follow_ups", rule=Rule.TOO_MANY_FOLLOW_UPS, message=message)
    for field, text in follow_ups:
        yield from _of_length(f"{field}.text", text, taken.text, Rule.TEXT_REQUIRED, Rule.TEXT_TOO_LONG)


def _of_destination(destination: str, rules: ChannelRules) -> Iterator[Violation]:
    rule = rules.destination
    if rule is None:
        if destination:
            message = "the channel has no destinations inside an account"
            yield Violation(field="destination", rule=Rule.DESTINATION_NOT_TAKEN, message=message)
    elif not destination:
        if rule.is_required:
            message = f"is required: {rule.description}"
            yield Violation(field="destination", rule=Rule.DESTINATION_REQUIRED, message=message)
    elif not re.fullmatch(rule.pattern, destination, re.DOTALL):
        yield Violation(field="destination", rule=Rule.DESTINATION_MALFORMED, message=f"must be {rule.description}")


def _kinds(rule: MediaRule) -> str:
    taken = {"a picture": rule.image, "a video": rule.video, "a document": rule.document}
    return " or ".join(name for name, each in taken.items() if each is not None)


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _span(least: float | None, most: float | None) -> str:
    shown: Iterable[str] = (
        f"at least {least:g}" if least is not None else "",
        f"at most {most:g}" if most is not None else "",
    )
    return " and ".join(filter(None, shown))
