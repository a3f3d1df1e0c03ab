import pytest

from drafts_service.domain.content import MOST_BYTES, Body, ChannelText, Content, checked_content
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


def test_a_content_too_large_for_one_response_is_refused() -> None:
    assert Body.of(b"x" * MOST_BYTES).digest
    with pytest.raises(InvalidField) as refusal:
        Body.of(b"x" * (MOST_BYTES + 1))
    assert field_of(refusal.value) == "draft.content"
