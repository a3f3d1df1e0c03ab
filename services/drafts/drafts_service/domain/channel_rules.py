"""Rules of channels, as Publisher shows them, and the refusal of a content that breaks one."""

from collections.abc import Iterator, Mapping, Sequence

from channels.rules import ChannelRules
from channels.validation import channel_post, violations
from drafts_service.domain.content import Content
from drafts_service.domain.media import known_media
from drafts_service.domain.target import Target
from servicekit.faults import InvalidRequest, Violation

Rules = Mapping[str, Mapping[str, ChannelRules]]
"""By provider and channel."""


def require_within_rules(
    content: Content, targets: Sequence[Target], providers: Mapping[str, str], rules: Rules
) -> None:
    """Raises CONTENT_BREAKS_RULES with each field and rule. A target of an unknown provider breaks nothing.

    `providers` are by account id.
    """
    broken = tuple(dict.fromkeys(_broken(content, targets, providers, rules)))
    if broken:
        first = broken[0]
        raise InvalidRequest(
            "CONTENT_BREAKS_RULES",
            f"{first.field}: {first.description}",
            metadata={"field": first.field},
            violations=broken,
        )


def _broken(
    content: Content, targets: Sequence[Target], providers: Mapping[str, str], rules: Rules
) -> Iterator[Violation]:
    for index, target in enumerate(targets):
        offered = rules.get(providers.get(target.social_account_id, ""))
        if offered is None:
            continue
        if target.channel not in offered:
            known = ", ".join(sorted(offered))
            yield Violation(
                field=f"draft.targets[{index}].channel",
                description=f"the account does not offer {target.channel}, but {known} (CHANNEL_NOT_OFFERED)",
            )
            continue
        yield from _of_target(content, index, target, offered[target.channel])


def _of_target(content: Content, index: int, target: Target, rules: ChannelRules) -> Iterator[Violation]:
    post = channel_post(
        target.channel,
        text=content.text,
        hashtags=content.hashtags,
        channel_texts=[(each.channel, each.text) for each in content.channel_texts],
        title=content.title,
        link=content.link,
        media=list(map(known_media, content.media)),
        channel_media=[(each.channel, list(map(known_media, each.media))) for each in content.channel_media],
        follow_ups=[(each.channel, each.text) for each in content.follow_ups],
        destination=target.destination,
    )
    for each in violations(post, rules):
        if not each.is_warning:
            is_of_target = each.field == "destination"
            field = f"draft.targets[{index}].destination" if is_of_target else f"draft.content.{each.field}"
            yield Violation(field=field, description=f"on {target.channel}: {each.message} ({each.rule})")
