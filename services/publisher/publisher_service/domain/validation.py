"""Validations: what a content breaks on the channels of its targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from channels.rules import ChannelRules
from channels.validation import ChannelPost, KnownMedia, Violation, channel_post, violations
from publisher_service.domain.content import Content, ContentMedia
from publisher_service.domain.post_job import Target

ACCOUNT_NOT_FOUND: Final = "ACCOUNT_NOT_FOUND"
PROVIDER_UNKNOWN: Final = "PROVIDER_UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The findings about one target; `unchecked_reason` says why there are none."""

    target: Target
    provider: str = ""
    unchecked_reason: str = ""
    is_offered: bool = True
    violations: Sequence[Violation] = ()

    @property
    def is_valid(self) -> bool:
        broken = any(not each.is_warning for each in self.violations)
        return not (self.unchecked_reason or broken) and self.is_offered


Rules = Mapping[str, Mapping[str, ChannelRules]]
"""By provider and channel."""


def validations(
    content: Content, targets: Sequence[Target], providers: Mapping[str, str], rules: Rules
) -> list[Validation]:
    """Returns a validation for each target. `providers` has the provider of each account that exists."""
    return [_validation(content, index, target, providers, rules) for index, target in enumerate(targets)]


def _validation(content: Content, index: int, target: Target, providers: Mapping[str, str], rules: Rules) -> Validation:
    provider = providers.get(target.social_account_id, "")
    if not provider:
        return Validation(target=target, unchecked_reason=ACCOUNT_NOT_FOUND)
    if provider not in rules:
        return Validation(target=target, provider=provider, unchecked_reason=PROVIDER_UNKNOWN)
    offered = rules[provider].get(target.channel)
    if offered is None:
        return Validation(target=target, provider=provider, is_offered=False)
    found = [_placed(each, index) for each in violations(_post(content, target), offered)]
    return Validation(target=target, provider=provider, violations=found)


def _post(content: Content, target: Target) -> ChannelPost:
    return channel_post(
        target.channel,
        text=content.text,
        hashtags=content.hashtags,
        channel_texts=list(content.channel_texts.items()),
        title=content.title,
        link=content.link,
        media=[_known(each) for each in content.media],
        channel_media=[(each, [_known(one) for one in media]) for each, media in content.channel_media.items()],
        follow_ups=[(each.channel, each.text) for each in content.follow_ups],
        destination=target.destination,
    )


def _known(media: ContentMedia) -> KnownMedia:
    facts = media.facts
    if facts is None:
        return KnownMedia()
    return KnownMedia(
        kind=facts.kind,
        content_type=facts.content_type,
        size=facts.size,
        width=facts.width or None,
        height=facts.height or None,
        duration=facts.duration,
    )


def _placed(violation: Violation, index: int) -> Violation:
    """Returns the violation with its field as the caller of the request knows it."""
    is_of_target = violation.field == "destination"
    return replace(violation, field=f"targets[{index}].destination" if is_of_target else f"content.{violation.field}")
