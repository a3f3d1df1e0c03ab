import pytest

from channels import KNOWN
from drafts_service.domain.content import MOST_BYTES, Body, ChannelText, Content, checked_content
from drafts_service.domain.target import Target, checked_targets
from servicekit.faults import InvalidField, InvalidRequest

FACEBOOK = Target(social_account_id="account", channel="facebook")
LINKEDIN = Target(social_account_id="account", channel="linkedin_profile")


def target(channel: str, account: str = "account", destination: str = "") -> Target:
    return Target(social_account_id=account, channel=channel, destination=destination)


def field_of(refusal: InvalidRequest) -> str:
    (violation,) = refusal.violations
    return violation.field


def test_channels_get_their_one_spelling() -> None:
    given = [target(" Instagram"), target("linkedin"), target("telegram", destination="@news")]
    assert checked_targets(given) == (
        target("instagram_feed"),
        target("linkedin_profile"),
        target("telegram", destination="@news"),
    )


def test_an_unknown_channel_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidField) as refusal:
        checked_targets([target("facebook"), target("myspace")])
    assert field_of(refusal.value) == "draft.targets[1].channel"
    assert refusal.value.reason == "UNKNOWN_CHANNEL"
    assert all(name in refusal.value.message for name in KNOWN)


def test_two_targets_that_are_one_after_normalisation_are_refused() -> None:
    with pytest.raises(InvalidField) as refusal:
        checked_targets([target("facebook"), target("linkedin"), target("linkedin_profile")])
    assert field_of(refusal.value) == "draft.targets[2]"
    assert "draft.targets[1]" in refusal.value.message


def test_one_account_may_post_to_several_destinations() -> None:
    given = [target("telegram", destination="@a"), target("telegram", destination="@b"), target("telegram", "other")]
    assert checked_targets(given) == tuple(given)


@pytest.mark.parametrize("number", [0, 26])
def test_a_draft_has_1_to_25_targets(number: int) -> None:
    with pytest.raises(InvalidField) as refusal:
        checked_targets([target("facebook", f"account-{index}") for index in range(number)])
    assert field_of(refusal.value) == "draft.targets"


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        checked_content(Content(text=text), [FACEBOOK])
    assert field_of(refusal.value) == "draft.content.text"


def test_the_channels_of_texts_get_their_one_spelling() -> None:
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
def test_a_channel_text_must_be_the_only_one_of_a_channel_that_is_targeted(
    channels: list[str], description: str
) -> None:
    texts = tuple(ChannelText(channel=channel, text="text") for channel in channels)
    with pytest.raises(InvalidField, match=description) as refusal:
        checked_content(Content(text="all", channel_texts=texts), [FACEBOOK, LINKEDIN])
    assert field_of(refusal.value) == "draft.content.channel_texts[1].channel"


def test_a_content_that_could_not_be_read_back_in_one_answer_is_refused() -> None:
    assert Body.of(b"x" * MOST_BYTES).digest
    with pytest.raises(InvalidField) as refusal:
        Body.of(b"x" * (MOST_BYTES + 1))
    assert field_of(refusal.value) == "draft.content"
