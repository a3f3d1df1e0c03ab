"""The text that each channel gets."""

from publisher_service.domain.content import Content, ContentMedia, FollowUp, Message, media_for, message_for, text_for


def test_a_channel_gets_its_own_text_and_every_channel_the_hashtags() -> None:
    content = Content(text="common", hashtags=("one", "two"), channel_texts={"telegram": "own"})
    assert text_for(content, "facebook") == "common\n\n#one #two"
    assert text_for(content, "telegram") == "own\n\n#one #two"


def test_without_hashtags_the_text_stands_alone() -> None:
    assert text_for(Content(text="common", channel_texts={}), "facebook") == "common"


def test_a_channels_own_text_may_be_empty() -> None:
    assert text_for(Content(text="common", channel_texts={"facebook": ""}), "facebook") == ""


ONE, TWO = ContentMedia(url="https://x.example/1.jpg"), ContentMedia(url="https://x.example/2.jpg")


def test_a_channel_gets_its_own_media_or_none_or_the_common_one() -> None:
    own = {"telegram": (TWO,), "linkedin_profile": ()}
    content = Content(text="all", channel_texts={}, media=(ONE, TWO), channel_media=own)
    assert media_for(content, "facebook") == (ONE, TWO)
    assert media_for(content, "telegram") == (TWO,)
    assert media_for(content, "linkedin_profile") == ()


def test_media_title_and_link_belong_to_the_post_alone() -> None:
    media = (ContentMedia(url="https://example.com/a.png"),)
    content = Content(
        text="hello",
        hashtags=("one",),
        channel_texts={},
        title="title",
        link="https://example.com",
        media=media,
        follow_ups=(
            FollowUp(channel="facebook", text="first"),
            FollowUp(channel="telegram", text="elsewhere"),
            FollowUp(channel="facebook", text="second"),
        ),
    )
    post = Message(text="hello\n\n#one", title="title", link="https://example.com", media=media)
    found = [message_for(content, "facebook", part) for part in range(4)]
    assert found == [post, Message(text="first"), Message(text="second"), None]
