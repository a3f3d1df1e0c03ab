"""ListChannels and ValidateContent: what a channel takes, and what of a content breaks that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import channels
from postflow.drafts.v1 import draft_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1 import social_account_service_pb2
from postflow.target.v1 import target_pb2
from testkit.refusals import fields_at_fault, refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub
    from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceAsyncStub


@pytest.fixture(autouse=True)
async def page(accounts: SocialAccountServiceAsyncStub) -> None:
    await accounts.ConnectAccount(
        social_account_service_pb2.ConnectAccountRequest(
            organization_id="acme",
            social_account_id="page",
            provider="sandbox",
            external_account_id="e",
            credentials=social_account_service_pb2.Credentials(access_token="sandbox-ok"),
        )
    )


def question(
    text: str = "hello", account: str = "page", channel: str = "Facebook", **content: object
) -> pb.ValidateContentRequest:
    return pb.ValidateContentRequest(
        organization_id="acme",
        content=draft_pb2.DraftContent(text=text, **content),  # type: ignore[arg-type]
        targets=[target_pb2.Target(social_account_id=account, channel=channel)],
    )


async def test_all_channels_are_listed_with_their_rules(publisher: PublisherServiceAsyncStub) -> None:
    (sandbox,) = (await publisher.ListChannels(pb.ListChannelsRequest())).providers
    assert (sandbox.name, sandbox.proof) == ("sandbox", "KEYED")
    assert [each.name for each in sandbox.channels] == list(channels.KNOWN)
    rules = sandbox.channels[0].rules
    assert (rules.text.most, rules.text.unit, rules.media.most) == (5000, "CHARACTERS", 20)
    assert "image/jpeg" in rules.media.image.types
    assert not rules.HasField("most_hashtags")
    assert (await publisher.ListChannels(pb.ListChannelsRequest(provider="other"))).providers == []


async def test_a_content_within_the_rules_is_valid(publisher: PublisherServiceAsyncStub) -> None:
    answer = await publisher.ValidateContent(question())
    assert answer.valid
    assert [(each.target.channel, each.provider) for each in answer.targets] == [("facebook", "sandbox")]


async def test_a_broken_rule_is_named_with_its_field_and_limit(publisher: PublisherServiceAsyncStub) -> None:
    follow_ups = [draft_pb2.FollowUp(channel="facebook", text="x" * 5001)]
    answer = await publisher.ValidateContent(question("x" * 5001, follow_ups=follow_ups))
    assert not answer.valid
    (target,) = answer.targets
    assert [(each.field, each.rule, each.message) for each in target.violations] == [
        ("content.text", "TEXT_TOO_LONG", "must have at most 5000 characters, and has 5001"),
        ("content.follow_ups[0].text", "TEXT_TOO_LONG", "must have at most 5000 characters, and has 5001"),
    ]


TIFF = draft_pb2.Media(
    url="https://cdn.example/1.tiff",
    facts=draft_pb2.MediaFacts(kind=draft_pb2.MEDIA_KIND_IMAGE, content_type="image/tiff"),
)


async def test_channels_inside_the_content_are_normalised(publisher: PublisherServiceAsyncStub) -> None:
    content: dict[str, Any] = {
        "channel_texts": [draft_pb2.ChannelText(channel="Telegram", text="x" * 5001)],
        "follow_ups": [draft_pb2.FollowUp(channel=" Telegram", text="x" * 5001)],
        "channel_media": [draft_pb2.ChannelMedia(channel="TELEGRAM", media=[TIFF])],
    }
    (target,) = (await publisher.ValidateContent(question(channel="telegram", **content))).targets
    assert [(each.field, each.rule) for each in target.violations] == [
        ("content.channel_texts[0].text", "TEXT_TOO_LONG"),
        ("content.channel_media[0].media[0]", "MEDIA_TYPE"),
        ("content.follow_ups[0].text", "TEXT_TOO_LONG"),
    ]


PICTURE = draft_pb2.Media(url="https://cdn.example/1.jpg")
MALFORMED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no text": ({"text": " "}, "content.text", "INVALID_FIELD"),
    "a title of two lines": ({"title": "one\ntwo"}, "content.title", "INVALID_FIELD"),
    "a link that is none": ({"link": "ftp://example.com"}, "content.link", "URL_MALFORMED"),
    "the same media twice": ({"media": [PICTURE, PICTURE]}, "content.media[1].url", "INVALID_FIELD"),
    "media at no address": ({"media": [draft_pb2.Media(url="1.jpg")]}, "content.media[0].url", "URL_MALFORMED"),
    "an unknown channel": (
        {"channel_texts": [draft_pb2.ChannelText(channel="myspace", text="x")]},
        "content.channel_texts[0].channel",
        "UNKNOWN_CHANNEL",
    ),
    "a channel twice": (
        {"channel_texts": [draft_pb2.ChannelText(channel=each, text="x") for each in ("facebook", "Facebook")]},
        "content.channel_texts[1].channel",
        "INVALID_FIELD",
    ),
    "a channel without a target": (
        {"channel_media": [draft_pb2.ChannelMedia(channel="telegram", media=[PICTURE])]},
        "content.channel_media[0].channel",
        "INVALID_FIELD",
    ),
    "a blank follow-up": (
        {"follow_ups": [draft_pb2.FollowUp(channel="facebook", text="\u200b")]},
        "content.follow_ups[0].text",
        "INVALID_FIELD",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_a_content_that_is_no_draft_is_refused(publisher: PublisherServiceAsyncStub, case: str) -> None:
    content, field, reason = MALFORMED[case]
    _, refusal = await refusal_of(publisher.ValidateContent(question(**content)))
    assert (fields_at_fault(refusal), refusal.reason) == ([field], reason)


async def test_two_equal_targets_are_refused(publisher: PublisherServiceAsyncStub) -> None:
    asked = question()
    asked.targets.append(target_pb2.Target(social_account_id="page", channel="facebook"))
    _, refusal = await refusal_of(publisher.ValidateContent(asked))
    assert fields_at_fault(refusal) == ["targets[1]"]


async def test_an_unknown_account_is_named_and_not_valid(publisher: PublisherServiceAsyncStub) -> None:
    answer = await publisher.ValidateContent(question(account="absent"))
    assert (answer.valid, answer.targets[0].unchecked_reason) == (False, "ACCOUNT_NOT_FOUND")


async def test_an_unknown_channel_is_refused(publisher: PublisherServiceAsyncStub) -> None:
    _, refusal = await refusal_of(publisher.ValidateContent(question(channel="myspace")))
    assert refusal.reason == "UNKNOWN_CHANNEL"
    assert fields_at_fault(refusal) == ["targets[0].channel"]


async def test_a_question_without_targets_or_content_is_refused(publisher: PublisherServiceAsyncStub) -> None:
    empty = pb.ValidateContentRequest(organization_id="acme")
    _, refusal = await refusal_of(publisher.ValidateContent(empty))
    assert fields_at_fault(refusal) == ["content", "targets"]
