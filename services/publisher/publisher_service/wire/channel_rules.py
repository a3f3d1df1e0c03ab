"""Rules of channels, and what a content breaks of them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from channels.rules import (
    ChannelRules,
    DestinationRule,
    DocumentRule,
    FollowUpRule,
    ImageRule,
    MediaRule,
    TextRule,
    VideoRule,
)
from channels.validation import Violation
from postflow.publisher.v1 import channel_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.validation import Validation
from publisher_service.wire.targets import target_message


def list_channels_response(
    providers: Sequence[tuple[str, str, Mapping[str, ChannelRules]]],
) -> pb.ListChannelsResponse:
    """Encodes providers, each with its name, its proof and the rules of its channels."""
    return pb.ListChannelsResponse(
        providers=[
            channel_pb2.Provider(
                name=name,
                proof=proof,
                channels=[channel_pb2.Channel(name=channel, rules=_rules(rules[channel])) for channel in sorted(rules)],
            )
            for name, proof, rules in providers
        ]
    )


def validate_content_response(found: Sequence[Validation]) -> pb.ValidateContentResponse:
    return pb.ValidateContentResponse(
        valid=all(each.is_valid for each in found),
        targets=[
            pb.TargetValidation(
                target=target_message(each.target),
                unchecked_reason=each.unchecked_reason,
                provider=each.provider,
                violations=[*_not_offered(each, index), *map(_violation, each.violations)],
            )
            for index, each in enumerate(found)
        ],
    )


def _not_offered(found: Validation, index: int) -> list[channel_pb2.Violation]:
    if found.is_offered:
        return []
    message = f"{found.provider} does not offer {found.target.channel}"
    field = f"targets[{index}].channel"
    return [channel_pb2.Violation(field=field, rule="CHANNEL_NOT_OFFERED", message=message)]


def _violation(violation: Violation) -> channel_pb2.Violation:
    return channel_pb2.Violation(
        field=violation.field, rule=violation.rule, message=violation.message, warning=violation.is_warning
    )


def _rules(rules: ChannelRules) -> channel_pb2.ChannelRules:
    return channel_pb2.ChannelRules(
        text=_text(rules.text),
        caption=_text(rules.caption),
        title=_text(rules.title),
        most_hashtags=rules.most_hashtags,
        most_mentions=rules.most_mentions,
        takes_link=rules.takes_link,
        link_in_text=rules.link_in_text,
        media=_media(rules.media),
        follow_ups=_follow_ups(rules.follow_ups),
        destination=_destination(rules.destination),
    )


def _text(rule: TextRule | None) -> channel_pb2.TextRule | None:
    if rule is None:
        return None
    return channel_pb2.TextRule(most=rule.most, unit=rule.unit, required=rule.is_required, hidden=not rule.is_shown)


def _media(rule: MediaRule | None) -> channel_pb2.MediaRule | None:
    if rule is None:
        return None
    return channel_pb2.MediaRule(
        most=rule.most,
        least=rule.least,
        image=_image(rule.image),
        video=_video(rule.video),
        document=_document(rule.document),
        may_mix=rule.may_mix,
        documents_apart=rule.documents_apart,
        most_bytes_together=rule.most_bytes_together,
    )


def _image(rule: ImageRule | None) -> channel_pb2.ImageRule | None:
    if rule is None:
        return None
    return channel_pb2.ImageRule(
        types=rule.types,
        most_bytes=rule.most_bytes,
        least_ratio=rule.least_ratio,
        most_ratio=rule.most_ratio,
        most_pixels=rule.most_pixels,
        most_sides=rule.most_sides,
    )


def _video(rule: VideoRule | None) -> channel_pb2.VideoRule | None:
    if rule is None:
        return None
    return channel_pb2.VideoRule(
        types=rule.types,
        most_bytes=rule.most_bytes,
        least_duration=_duration(rule.least_duration),
        most_duration=_duration(rule.most_duration),
        least_ratio=rule.least_ratio,
        most_ratio=rule.most_ratio,
    )


def _document(rule: DocumentRule | None) -> channel_pb2.DocumentRule | None:
    return None if rule is None else channel_pb2.DocumentRule(types=rule.types, most_bytes=rule.most_bytes)


def _follow_ups(rule: FollowUpRule | None) -> channel_pb2.FollowUpRule | None:
    return None if rule is None else channel_pb2.FollowUpRule(kind=rule.kind, most=rule.most, text=_text(rule.text))


def _destination(rule: DestinationRule | None) -> channel_pb2.DestinationRule | None:
    if rule is None:
        return None
    return channel_pb2.DestinationRule(pattern=rule.pattern, description=rule.description, required=rule.is_required)


def _duration(duration: timedelta | None) -> Duration | None:
    if duration is None:
        return None
    message = Duration()
    message.FromTimedelta(duration)
    return message
