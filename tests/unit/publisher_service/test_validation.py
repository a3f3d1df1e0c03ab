"""Validations: the violations of each target, by the fields of the request."""

from datetime import timedelta

from channels.rules import ChannelRules, FollowUpKind, FollowUpRule, MediaRule, TextRule, VideoRule
from channels.validation import MediaKind, Rule
from publisher_service.domain.content import Content, ContentMedia, FollowUp
from publisher_service.domain.media import MediaFacts
from publisher_service.domain.post_job import Target
from publisher_service.domain.validation import Validation, validations

SHORT = ChannelRules(
    text=TextRule(most=5),
    media=MediaRule(most=1, video=VideoRule(types=("video/mp4",), most_bytes=10, most_duration=timedelta(seconds=1))),
    follow_ups=FollowUpRule(kind=FollowUpKind.COMMENT, most=5, text=TextRule(most=3)),
)
RULES = {"short": {"facebook": SHORT, "telegram": SHORT}}
PAGE, CHAT = (Target(social_account_id="page", channel=each) for each in ("facebook", "telegram"))


def found(content: Content, *targets: Target, provider: str = "short") -> list[Validation]:
    return validations(content, targets or (PAGE,), {"page": provider}, RULES)


def broken(validation: Validation) -> list[tuple[str, Rule]]:
    return [(each.field, each.rule) for each in validation.violations]


def test_each_target_is_checked_by_the_text_of_its_channel() -> None:
    content = Content(text="short", channel_texts={"facebook": "short", "telegram": "too long"})
    page, chat = found(content, PAGE, CHAT)
    assert (page.is_valid, broken(page)) == (True, [])
    assert broken(chat) == [("content.channel_texts[1].text", Rule.TEXT_TOO_LONG)]
    assert not chat.is_valid


def test_hashtags_count_towards_the_text() -> None:
    content = Content(text="short", hashtags=("tag",), channel_texts={})
    assert broken(found(content)[0]) == [("content.text", Rule.TEXT_TOO_LONG)]


def test_only_follow_ups_of_the_channel_count() -> None:
    follow_ups = (FollowUp(channel="telegram", text="too long"), FollowUp(channel="facebook", text="four"))
    content = Content(text="short", channel_texts={}, follow_ups=follow_ups)
    assert broken(found(content)[0]) == [("content.follow_ups[1].text", Rule.TEXT_TOO_LONG)]


def test_media_is_checked_as_far_as_it_is_known() -> None:
    facts = MediaFacts(
        kind=MediaKind.VIDEO, content_type="video/mp4", size=11, sha256="0" * 64, duration=timedelta(seconds=2)
    )
    media = (ContentMedia(url="https://x.example/1.mp4", facts=facts),)
    content = Content(text="short", channel_texts={}, media=media)
    rules = [("content.media[0]", Rule.MEDIA_TOO_LARGE), ("content.media[0]", Rule.MEDIA_DURATION)]
    assert broken(found(content)[0]) == rules
    unknown = Content(text="short", channel_texts={}, media=(ContentMedia(url="https://x.example/1.mp4"),))
    assert found(unknown)[0].is_valid


def test_media_of_the_channel_goes_before_the_common_one() -> None:
    two = tuple(ContentMedia(url=f"https://x.example/{number}.mp4") for number in range(2))
    content = Content(text="short", channel_texts={}, media=two, channel_media={"telegram": two, "facebook": ()})
    page, chat = found(content, PAGE, CHAT)
    assert broken(page) == []
    assert broken(chat) == [("content.channel_media[0].media", Rule.TOO_MANY_MEDIA)]


def test_a_destination_is_named_by_its_target() -> None:
    target = Target(social_account_id="page", channel="telegram", destination="@news")
    content = Content(text="short", channel_texts={})
    assert broken(found(content, PAGE, target)[1]) == [("targets[1].destination", Rule.DESTINATION_NOT_TAKEN)]


def test_what_cannot_be_checked_says_why() -> None:
    content = Content(text="short", channel_texts={})
    (absent,) = validations(content, [PAGE], {}, RULES)
    (foreign,) = found(content, provider="newer")
    (other,) = found(content, Target(social_account_id="page", channel="email"))
    assert (absent.unchecked_reason, foreign.unchecked_reason) == ("ACCOUNT_NOT_FOUND", "PROVIDER_UNKNOWN")
    assert (other.unchecked_reason, other.is_offered) == ("", False)
    assert [each.is_valid for each in (absent, foreign, other)] == [False] * 3
