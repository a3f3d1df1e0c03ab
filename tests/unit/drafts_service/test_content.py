import pytest

from drafts_service.domain.content import (
    MOST_BYTES,
    Body,
    ChannelMedia,
    ChannelText,
    Content,
    FollowUp,
    Media,
    checked_content,
)
from drafts_service.domain.target import Target
from servicekit.faults import InvalidField, InvalidRequest

FACEBOOK = Target(social_account_id="account", channel="facebook")
LINKEDIN = Target(social_account_id="account", channel="linkedin_profile")


def field_of(refusal: InvalidRequest) -> str:
    (violation,) = refusal.violations
    return violation.field


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        checked_content(Content(text=text), [FACEBOOK])
    assert field_of(refusal.value) == "draft.content.text"


def test_channels_of_channel_texts_are_normalised() -> None:
    content = Content(text="all", channel_texts=(ChannelText(channel="LinkedIn", text="few"),))
    assert checked_content(content, [LINKEDIN]) == Content(
        text="all", channel_texts=(ChannelText(channel="linkedin_profile", text="few"),)
    )


@pytest.mark.parametrize(
    ("channels", "description"),
    [
        (["facebook", "Facebook"], "already has a text"),
        (["facebook", "telegram"], "no target is on telegram"),
        (["facebook", "myspace"], "unknown channel"),
    ],
)
def test_a_channel_text_must_be_the_only_one_of_a_targeted_channel(channels: list[str], description: str) -> None:
    texts = tuple(ChannelText(channel=channel, text="text") for channel in channels)
    with pytest.raises(InvalidField, match=description) as refusal:
        checked_content(Content(text="all", channel_texts=texts), [FACEBOOK, LINKEDIN])
    assert field_of(refusal.value) == "draft.content.channel_texts[1].channel"


@pytest.mark.parametrize("blank", [" ", "\u200b \n"])
def test_a_channel_text_in_which_nothing_is_to_be_seen_is_refused(blank: str) -> None:
    texts = tuple(ChannelText(channel=name, text=text) for name, text in (("facebook", "text"), ("linkedin", blank)))
    media = (Media(url="https://x.example/1.jpg"),)
    with pytest.raises(InvalidField) as refusal:
        checked_content(Content(text="all", channel_texts=texts, media=media), [FACEBOOK, LINKEDIN])
    assert field_of(refusal.value) == "draft.content.channel_texts[1].text"


def test_a_content_too_large_for_one_response_is_refused() -> None:
    assert Body.of(b"x" * MOST_BYTES).digest
    with pytest.raises(InvalidField) as refusal:
        Body.of(b"x" * (MOST_BYTES + 1))
    assert field_of(refusal.value) == "draft.content"


PICTURE = Media(url="https://pictures.example/1.jpg")


def test_a_picture_needs_no_text() -> None:
    assert checked_content(Content(text="", media=(PICTURE,)), [FACEBOOK]).media == (PICTURE,)


REFUSED = {
    "a title of two lines": (Content(text="all", title="one\r\nBcc: two"), "draft.content.title"),
    "a link that is none": (Content(text="all", link="pictures.example"), "draft.content.link"),
    "a link of another kind": (Content(text="all", link="javascript://x/%0aalert(1)"), "draft.content.link"),
    "a link with a space": (Content(text="all", link="https://pictures.example/a b"), "draft.content.link"),
    "media without a host": (Content(text="all", media=(Media(url="https:///1.jpg"),)), "draft.content.media[0].url"),
    "media with a bad host": (Content(text="all", media=(Media(url="https://[::1"),)), "draft.content.media[0].url"),
    "the same media twice": (Content(text="all", media=(PICTURE, PICTURE)), "draft.content.media[1].url"),
    "media of a channel without a target": (
        Content(text="all", channel_media=(ChannelMedia(channel="telegram", media=(PICTURE,)),)),
        "draft.content.channel_media[0].channel",
    ),
    "two lists of media of a channel": (
        Content(
            text="all", channel_media=tuple(ChannelMedia(channel=each, media=()) for each in ("facebook", "Facebook"))
        ),
        "draft.content.channel_media[1].channel",
    ),
    "malformed media of a channel": (
        Content(text="all", channel_media=(ChannelMedia(channel="facebook", media=(PICTURE, Media(url="x"))),)),
        "draft.content.channel_media[0].media[1].url",
    ),
    "a follow-up without a target": (
        Content(text="all", follow_ups=(FollowUp(channel="threads", text="two"),)),
        "draft.content.follow_ups[0].channel",
    ),
    "an empty follow-up": (
        Content(text="all", follow_ups=(FollowUp(channel="facebook", text=" "),)),
        "draft.content.follow_ups[0].text",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_malformed_is_refused_by_its_field(case: str) -> None:
    content, field = REFUSED[case]
    with pytest.raises(InvalidField) as refusal:
        checked_content(content, [FACEBOOK])
    assert field_of(refusal.value) == field


def test_channels_of_follow_ups_are_normalised_in_their_order() -> None:
    texts = ("one", "two")
    given = Content(text="all", follow_ups=tuple(FollowUp(channel="LinkedIn", text=each) for each in texts))
    after = checked_content(given, [LINKEDIN]).follow_ups
    assert [(each.channel, each.text) for each in after] == [("linkedin_profile", each) for each in texts]


def test_a_channel_may_have_media_of_its_own_or_none() -> None:
    own = tuple(ChannelMedia(channel=channel, media=()) for channel in ("Facebook", "LinkedIn"))
    after = checked_content(Content(text="", media=(PICTURE,), channel_media=own), [FACEBOOK, LINKEDIN])
    assert [each.channel for each in after.channel_media] == ["facebook", "linkedin_profile"]
