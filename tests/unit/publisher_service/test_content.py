"""The text that each channel gets."""

import pytest

from publisher_service.domain.content import (
    Content,
    ContentMedia,
    FollowUp,
    Message,
    is_alike,
    media_for,
    message_for,
    text_for,
)


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


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Message(text="a b"), Message(text=" a\n b", title="t"), True),
        (Message(text="a"), Message(text="b"), False),
        (Message(text="a", link="https://x.example"), Message(text="a\n\nhttps://x.example"), True),
        (Message(text="a", link="https://x.example"), Message(text="a", link="https://y.example"), True),
        (Message(text="a", title="t"), Message(text="b", title="t"), False),
        (Message(text="", media=(ONE,)), Message(text="", media=(ONE,), title="t"), True),
        (Message(text="", media=(ONE,)), Message(text="", media=(TWO,)), False),
        (Message(text="", media=(ONE,)), Message(text="a", media=(ONE,)), False),
    ],
)
def test_messages_are_alike_if_a_list_may_show_them_so(one: Message, other: Message, expected: bool) -> None:
    assert is_alike(one, other, by_title=False) is expected
    assert is_alike(other, one, by_title=False) is expected


def test_messages_that_are_known_by_their_titles_are_alike_by_them() -> None:
    assert is_alike(Message(text="a", title="t"), Message(text="b", title="t"), by_title=True)
    assert not is_alike(Message(text="a"), Message(text="b"), by_title=True)
