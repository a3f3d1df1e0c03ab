"""The rules of the networks refuse what their adapters could not send."""

from dataclasses import replace

import pytest

from channels.rules import ChannelRules
from channels.validation import ChannelPost, KnownMedia, MediaKind, Rule, violations
from publisher_service.adapters.providers.linkedin_rules import LINKEDIN_RULES
from publisher_service.adapters.providers.mail_rules import EMAIL_RULES
from publisher_service.adapters.providers.meta_rules import INSTAGRAM_RULES
from publisher_service.adapters.providers.telegram_rules import TELEGRAM_RULES
from publisher_service.adapters.providers.unipile_rules import INMAIL, MESSAGE, UNIPILE_RULES

LINK = "https://example.com/a"
PICTURE = KnownMedia(kind=MediaKind.IMAGE, content_type="image/jpeg", size=100, width=1080, height=1080)

VIDEO = KnownMedia(kind=MediaKind.VIDEO, content_type="video/mp4", size=100)
DOCUMENT = KnownMedia(kind=MediaKind.DOCUMENT, content_type="application/pdf", size=100)
UNKNOWN = KnownMedia()


def broken(post: ChannelPost, rules: ChannelRules) -> list[tuple[str, Rule]]:
    """Returns what the text and the media break."""
    found = [(each.field, each.rule) for each in violations(post, rules)]
    return [(field, rule) for field, rule in found if field not in {"destination", "title"}]


@pytest.mark.parametrize(
    ("rules", "most", "media"),
    [
        (TELEGRAM_RULES, 4096, ()),
        (TELEGRAM_RULES, 1024, (PICTURE,)),
        (LINKEDIN_RULES, 3000, (PICTURE,)),
        (EMAIL_RULES, 100_000, ()),
        (UNIPILE_RULES[MESSAGE], 8000, ()),
        (UNIPILE_RULES[INMAIL], 1900, ()),
    ],
)
def test_a_link_below_the_text_counts(rules: ChannelRules, most: int, media: tuple[KnownMedia, ...]) -> None:
    room = most - len(f"\n\n{LINK}")
    too_long = [("text", Rule.TEXT_TOO_LONG)]
    assert broken(ChannelPost(text="x" * room, link=LINK, media=media), rules) == []
    assert broken(ChannelPost(text="x" * (room + 1), link=LINK, media=media), rules) == too_long
    assert broken(ChannelPost(text="x" * (most - len(LINK)) + LINK, link=LINK, media=media), rules) == []


def test_a_link_with_a_preview_of_its_own_does_not_count() -> None:
    assert broken(ChannelPost(text="x" * 3000, link=LINK), LINKEDIN_RULES) == []


@pytest.mark.parametrize(
    ("media", "is_taken"),
    [
        ((PICTURE, VIDEO), True),
        ((DOCUMENT, DOCUMENT), True),
        ((DOCUMENT, UNKNOWN), True),
        ((PICTURE, DOCUMENT), False),
        ((DOCUMENT, VIDEO), False),
    ],
)
def test_an_album_of_telegram_has_documents_or_none(media: tuple[KnownMedia, ...], *, is_taken: bool) -> None:
    found = broken(ChannelPost(text="hello", media=media), TELEGRAM_RULES)
    assert found == ([] if is_taken else [("media", Rule.MEDIA_MIXED)])


@pytest.mark.parametrize(
    ("rules", "most"),
    [(EMAIL_RULES, 25_000_000), (UNIPILE_RULES[MESSAGE], 15_000_000), (UNIPILE_RULES[INMAIL], 15_000_000)],
)
def test_attachments_have_a_bound_on_their_sum(rules: ChannelRules, most: int) -> None:
    fitting, exceeding = (replace(DOCUMENT, size=size) for size in (most - 100, most - 99))
    assert broken(ChannelPost(text="hello", media=(PICTURE, fitting, UNKNOWN)), rules) == []
    found = broken(ChannelPost(text="hello", media=(PICTURE, exceeding)), rules)
    assert found == [("media", Rule.MEDIA_TOO_LARGE)]


@pytest.mark.parametrize("side", [200, 1440, 3000])
def test_instagram_scales_pictures_of_any_width(side: int) -> None:
    picture = replace(PICTURE, width=side, height=side)
    assert broken(ChannelPost(text="hello", media=(picture,)), INSTAGRAM_RULES["instagram_feed"]) == []


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [
        (5000, 5000, []),
        (6000, 4001, [("media[0]", Rule.MEDIA_DIMENSIONS)]),
        (100, 2000, []),
        (100, 2500, [("media[0]", Rule.MEDIA_RATIO)]),
        (2500, 100, [("media[0]", Rule.MEDIA_RATIO)]),
    ],
)
def test_a_photo_of_telegram_is_neither_huge_nor_narrow(
    width: int, height: int, expected: list[tuple[str, Rule]]
) -> None:
    picture = replace(PICTURE, width=width, height=height)
    assert broken(ChannelPost(text="hello", media=(picture,)), TELEGRAM_RULES) == expected
