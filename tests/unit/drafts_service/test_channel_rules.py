"""A content that breaks a rule of a channel is refused with every field and rule, once each."""

import pytest

from channels.rules import ChannelRules, DestinationRule, FollowUpKind, FollowUpRule, MediaRule, TextRule
from drafts_service.domain.channel_rules import Rules, require_within_rules
from drafts_service.domain.content import ChannelText, Content, FollowUp, Media
from drafts_service.domain.target import Target
from servicekit.faults import InvalidRequest

FEED = ChannelRules(
    text=TextRule(most=5),
    title=TextRule(most=3),
    media=MediaRule(most=1),
    takes_link=False,
    follow_ups=FollowUpRule(kind=FollowUpKind.COMMENT, most=2, text=TextRule(most=3)),
)
CHAT = ChannelRules(text=TextRule(most=9), destination=DestinationRule(pattern="@.+", description="a name like @news"))
RULES: Rules = {"net": {"facebook": FEED, "telegram": CHAT}}
PAGE = Target(social_account_id="page", channel="facebook")
NEWS = Target(social_account_id="page", channel="telegram", destination="@news")
PROVIDERS = {"page": "net", "other": "net"}


def refused(content: Content, *targets: Target) -> list[tuple[str, str]]:
    with pytest.raises(InvalidRequest) as refusal:
        require_within_rules(content, targets or (PAGE,), PROVIDERS, RULES)
    assert refusal.value.reason == "CONTENT_BREAKS_RULES"
    return [(each.field, each.description.rpartition(" ")[2]) for each in refusal.value.violations]


def test_a_content_within_the_rules_passes() -> None:
    content = Content(text="short", media=(Media(url="https://x.example/1.jpg"),), link="https://x.example")
    require_within_rules(content, [PAGE, Target(social_account_id="other", channel="facebook")], PROVIDERS, RULES)


def test_every_broken_rule_is_shown_with_its_field() -> None:
    content = Content(
        text="too long",
        title="long",
        media=tuple(Media(url=f"https://x.example/{n}.jpg") for n in range(2)),
        follow_ups=(FollowUp(channel="facebook", text="ok"), FollowUp(channel="facebook", text="long")),
    )
    assert refused(content) == [
        ("draft.content.text", "(TEXT_TOO_LONG)"),
        ("draft.content.title", "(TITLE_TOO_LONG)"),
        ("draft.content.media", "(TOO_MANY_MEDIA)"),
        ("draft.content.follow_ups[1].text", "(TEXT_TOO_LONG)"),
    ]


def test_two_accounts_of_one_channel_break_a_rule_once() -> None:
    other = Target(social_account_id="other", channel="facebook")
    assert refused(Content(text="too long"), PAGE, other) == [("draft.content.text", "(TEXT_TOO_LONG)")]


def test_the_text_of_the_channel_and_the_destination_are_named() -> None:
    texts = (ChannelText(channel="facebook", text="short"), ChannelText(channel="telegram", text="much too long"))
    nowhere = Target(social_account_id="page", channel="telegram", destination="news")
    assert refused(Content(text="all", channel_texts=texts), PAGE, NEWS, nowhere) == [
        ("draft.content.channel_texts[1].text", "(TEXT_TOO_LONG)"),
        ("draft.targets[2].destination", "(DESTINATION_MALFORMED)"),
    ]


def test_a_channel_that_the_provider_lacks_is_refused() -> None:
    email = Target(social_account_id="page", channel="email")
    assert refused(Content(text="all"), PAGE, email) == [("draft.targets[1].channel", "(CHANNEL_NOT_OFFERED)")]


@pytest.mark.parametrize("providers", [{}, {"page": "newer"}])
def test_what_nobody_knows_breaks_nothing(providers: dict[str, str]) -> None:
    require_within_rules(Content(text="too long"), [PAGE], providers, RULES)
