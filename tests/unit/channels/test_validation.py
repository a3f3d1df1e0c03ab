"""Rules of channels refuse a post by its field and its limit."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.rules import (
    ChannelRules,
    DestinationRule,
    DocumentRule,
    FollowUpKind,
    FollowUpRule,
    ImageRule,
    MediaRule,
    TextRule,
    Unit,
    VideoRule,
)
from channels.validation import WARNINGS, ChannelPost, KnownMedia, MediaKind, Rule, length, violations

FEED = ChannelRules(
    text=TextRule(most=20),
    caption=TextRule(most=10),
    title=TextRule(most=5),
    most_hashtags=2,
    most_mentions=1,
    takes_link=False,
    media=MediaRule(
        most=3,
        image=ImageRule(types=("image/jpeg",), most_bytes=100, least_ratio=0.8, most_ratio=1.91, most_pixels=2_000_000),
        video=VideoRule(
            types=("video/mp4",),
            most_bytes=1000,
            least_duration=timedelta(seconds=3),
            most_duration=timedelta(seconds=60),
        ),
    ),
    follow_ups=FollowUpRule(kind=FollowUpKind.COMMENT, most=1, text=TextRule(most=6)),
    destination=DestinationRule(pattern=r"@\w+", description="the name of a channel, such as @news"),
)
PLAIN = ChannelRules(text=TextRule(most=20))
GOOD = ChannelPost(text="hello", destination="@news")
IMAGE = KnownMedia(kind=MediaKind.IMAGE, content_type="image/jpeg", size=100, width=1080, height=1080)
VIDEO = KnownMedia(kind=MediaKind.VIDEO, content_type="video/mp4", size=1, duration=timedelta(seconds=30))
DOCUMENT = KnownMedia(kind=MediaKind.DOCUMENT, content_type="application/pdf", size=1)


def broken(post: ChannelPost, rules: ChannelRules = FEED) -> list[tuple[str, Rule]]:
    return [(each.field, each.rule) for each in violations(post, rules)]


def test_a_post_within_all_limits_breaks_nothing() -> None:
    full = replace(GOOD, title="title", media=(IMAGE, IMAGE), follow_ups=(("follow_ups[0]", "first!"),))
    assert broken(full) == []
    assert broken(replace(GOOD, text="", media=(IMAGE,))) == []


REFUSED: dict[str, tuple[dict[str, Any], str, Rule]] = {
    "an empty text": ({"text": ""}, "text", Rule.TEXT_REQUIRED),
    "a text in which nothing is to be seen": ({"text": "\u200b \n"}, "text", Rule.TEXT_REQUIRED),
    "a long text": ({"text": "x" * 21}, "text", Rule.TEXT_TOO_LONG),
    "a long text of the channel": (
        {"text": "x" * 21, "text_field": "channel_texts[1].text"},
        "channel_texts[1].text",
        Rule.TEXT_TOO_LONG,
    ),
    "a long caption": ({"text": "x" * 11, "media": (IMAGE,)}, "text", Rule.TEXT_TOO_LONG),
    "a long title": ({"title": "x" * 6}, "title", Rule.TITLE_TOO_LONG),
    "many hashtags": ({"text": "#one #two #three"}, "text", Rule.TOO_MANY_HASHTAGS),
    "many mentions": ({"text": "@ann @bob"}, "text", Rule.TOO_MANY_MENTIONS),
    "a link": ({"link": "https://x.example"}, "link", Rule.LINK_NOT_SHOWN),
    "many media": ({"media": (IMAGE,) * 4}, "media", Rule.TOO_MANY_MEDIA),
    "a video beside a picture": ({"media": (IMAGE, VIDEO)}, "media", Rule.MEDIA_MIXED),
    "a document": ({"media": (DOCUMENT,)}, "media[0]", Rule.MEDIA_KIND),
    "a picture of another type": (
        {"media": (IMAGE, replace(IMAGE, content_type="image/webp"))},
        "media[1]",
        Rule.MEDIA_TYPE,
    ),
    "a large picture": ({"media": (replace(IMAGE, size=101),)}, "media[0]", Rule.MEDIA_TOO_LARGE),
    "a tall picture": ({"media": (replace(IMAGE, height=1500),)}, "media[0]", Rule.MEDIA_RATIO),
    "a wide picture": ({"media": (replace(IMAGE, height=500),)}, "media[0]", Rule.MEDIA_RATIO),
    "a huge picture": ({"media": (replace(IMAGE, width=2000, height=2000),)}, "media[0]", Rule.MEDIA_DIMENSIONS),
    "a short video": ({"media": (replace(VIDEO, duration=timedelta(seconds=2)),)}, "media[0]", Rule.MEDIA_DURATION),
    "a long video": ({"media": (replace(VIDEO, duration=timedelta(seconds=61)),)}, "media[0]", Rule.MEDIA_DURATION),
    "many comments": (
        {"follow_ups": (("follow_ups[0]", "one"), ("follow_ups[1]", "two"))},
        "follow_ups",
        Rule.TOO_MANY_FOLLOW_UPS,
    ),
    "a long comment": ({"follow_ups": (("follow_ups[0]", "x" * 7),)}, "follow_ups[0].text", Rule.TEXT_TOO_LONG),
    "no destination": ({"destination": ""}, "destination", Rule.DESTINATION_REQUIRED),
    "a malformed destination": ({"destination": "news"}, "destination", Rule.DESTINATION_MALFORMED),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_breaks_a_rule_is_named(case: str) -> None:
    changes, field, rule = REFUSED[case]
    assert broken(replace(GOOD, **changes)) == [(field, rule)]


def test_a_required_text_is_one_that_can_be_seen() -> None:
    required = TextRule(most=20, is_required=True)
    rules = replace(FEED, text=required, caption=None, title=required)
    found = broken(replace(GOOD, text=" ", title="\u200b", media=(IMAGE,)), rules)
    assert found == [("text", Rule.TEXT_REQUIRED), ("title", Rule.TITLE_REQUIRED)]


def test_a_channel_without_media_comments_or_destinations_says_so() -> None:
    post = replace(GOOD, media=(IMAGE,), follow_ups=(("follow_ups[0]", "one"),))
    assert broken(post, PLAIN) == [
        ("media", Rule.TOO_MANY_MEDIA),
        ("follow_ups[0]", Rule.FOLLOW_UPS_NOT_TAKEN),
        ("destination", Rule.DESTINATION_NOT_TAKEN),
    ]


def test_a_channel_that_shows_no_text_warns_of_one() -> None:
    media = MediaRule(least=1, most=1, image=ImageRule(types=("image/jpeg",), most_bytes=100))
    rules = ChannelRules(text=TextRule(most=0, is_shown=False), media=media)
    assert broken(ChannelPost(text="", media=(IMAGE,)), rules) == []
    (warning,) = violations(ChannelPost(text="hello", media=(IMAGE,)), rules)
    assert warning.is_warning
    assert broken(ChannelPost(text=""), rules) == [("media", Rule.MEDIA_REQUIRED)]


def test_media_that_nobody_has_fetched_breaks_no_rule_of_its_bytes() -> None:
    assert broken(replace(GOOD, media=(KnownMedia(),))) == []


@pytest.mark.parametrize(
    ("unit", "text", "found"),
    [
        (Unit.CHARACTERS, "na\u00efve \U0001f600", 7),
        (Unit.UTF16, "na\u00efve \U0001f600", 8),
        (Unit.BYTES, "na\u00efve \U0001f600", 11),
    ],
)
def test_a_text_is_counted_as_the_provider_counts(unit: Unit, text: str, found: int) -> None:
    assert length(text, unit) == found


@given(st.text(), st.sampled_from(Unit))
def test_no_unit_counts_less_than_characters_or_fails(text: str, unit: Unit) -> None:
    assert len(text) <= length(text, unit) <= 4 * len(text)


@pytest.mark.parametrize(
    ("text", "hashtags"), [("a#b #c", 1), ("##d", 0), ("&#39;s", 0), ("#e, #f.", 2), ("# g", 0), ("#\u00fcber", 1)]
)
def test_hashtags_are_what_readers_take_for_them(text: str, hashtags: int) -> None:
    rules = replace(PLAIN, most_hashtags=0)
    said = [each.message for each in violations(ChannelPost(text=text), rules)]
    assert said == ([f"must have at most 0 hashtags, and has {hashtags}"] if hashtags else [])


def test_only_what_is_left_out_is_a_warning() -> None:
    assert {Rule.TEXT_NOT_SHOWN, Rule.LINK_NOT_SHOWN} == WARNINGS


def test_the_limit_and_the_finding_are_shown() -> None:
    media = MediaRule(most=1, document=DocumentRule(types=("application/pdf",), most_bytes=5))
    rules = replace(PLAIN, media=media)
    post = ChannelPost(text="x", media=(replace(DOCUMENT, size=6),))
    assert [each.message for each in violations(post, rules)] == ["must have at most 5 bytes, and has 6"]
