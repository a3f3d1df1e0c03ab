"""The text that each channel gets."""

from publisher_service.domain.content import Content, text_for


def test_a_channel_gets_its_own_text_and_every_channel_the_hashtags() -> None:
    content = Content(text="common", hashtags=("one", "two"), channel_texts={"telegram": "own"})
    assert text_for(content, "facebook") == "common\n\n#one #two"
    assert text_for(content, "telegram") == "own\n\n#one #two"


def test_without_hashtags_the_text_stands_alone() -> None:
    assert text_for(Content(text="common", channel_texts={}), "facebook") == "common"


def test_a_channels_own_text_may_be_empty() -> None:
    assert text_for(Content(text="common", channel_texts={"facebook": ""}), "facebook") == ""
