"""Rules of channels, as Publisher shows them."""

from channels.rules import (
    ChannelRules,
    DestinationRule,
    DocumentRule,
    FollowUpKind,
    FollowUpRule,
    ImageRule,
    LinkPlace,
    MediaRule,
    TextRule,
    Unit,
    VideoRule,
)
from drafts_service.domain.channel_rules import Rules
from postflow.publisher.v1 import channel_pb2
from postflow.publisher.v1.publisher_service_pb2 import ListChannelsResponse


def rules(response: ListChannelsResponse) -> Rules:
    """Translates the rules of all channels, by provider and channel."""
    return {
        provider.name: {channel.name: _channel_rules(channel.rules) for channel in provider.channels}
        for provider in response.providers
    }


def _channel_rules(message: channel_pb2.ChannelRules) -> ChannelRules:
    return ChannelRules(
        text=_text_rule(message.text),
        caption=_text_rule(message.caption) if message.HasField("caption") else None,
        title=_text_rule(message.title) if message.HasField("title") else None,
        most_hashtags=message.most_hashtags if message.HasField("most_hashtags") else None,
        most_mentions=message.most_mentions if message.HasField("most_mentions") else None,
        takes_link=message.takes_link,
        link_in_text=_link_place(message.link_in_text),
        media=_media_rule(message.media) if message.HasField("media") else None,
        follow_ups=_follow_up_rule(message.follow_ups) if message.HasField("follow_ups") else None,
        destination=_destination_rule(message.destination) if message.HasField("destination") else None,
    )


def _link_place(name: str) -> LinkPlace:
    """Counts no link if only a newer release knows the place, or an older one does not say it."""
    return LinkPlace(name) if name in set(LinkPlace) else LinkPlace.NEVER


def _text_rule(message: channel_pb2.TextRule) -> TextRule:
    """Counts characters if only a newer release knows the unit: none of a text is less than a unit."""
    unit = Unit(message.unit) if message.unit in set(Unit) else Unit.CHARACTERS
    return TextRule(most=message.most, unit=unit, is_required=message.required, is_shown=not message.hidden)


def _media_rule(message: channel_pb2.MediaRule) -> MediaRule:
    return MediaRule(
        most=message.most,
        least=message.least,
        image=_image_rule(message.image) if message.HasField("image") else None,
        video=_video_rule(message.video) if message.HasField("video") else None,
        document=_document_rule(message.document) if message.HasField("document") else None,
        may_mix=message.may_mix,
        documents_apart=message.documents_apart,
        most_bytes_together=message.most_bytes_together if message.HasField("most_bytes_together") else None,
    )


def _image_rule(message: channel_pb2.ImageRule) -> ImageRule:
    return ImageRule(
        types=tuple(message.types),
        most_bytes=message.most_bytes,
        least_ratio=message.least_ratio if message.HasField("least_ratio") else None,
        most_ratio=message.most_ratio if message.HasField("most_ratio") else None,
        most_pixels=message.most_pixels if message.HasField("most_pixels") else None,
        most_sides=message.most_sides if message.HasField("most_sides") else None,
    )


def _video_rule(message: channel_pb2.VideoRule) -> VideoRule:
    return VideoRule(
        types=tuple(message.types),
        most_bytes=message.most_bytes,
        least_duration=message.least_duration.ToTimedelta() if message.HasField("least_duration") else None,
        most_duration=message.most_duration.ToTimedelta() if message.HasField("most_duration") else None,
        least_ratio=message.least_ratio if message.HasField("least_ratio") else None,
        most_ratio=message.most_ratio if message.HasField("most_ratio") else None,
    )


def _document_rule(message: channel_pb2.DocumentRule) -> DocumentRule:
    return DocumentRule(types=tuple(message.types), most_bytes=message.most_bytes)


def _follow_up_rule(message: channel_pb2.FollowUpRule) -> FollowUpRule:
    kind = FollowUpKind.THREAD if message.kind == FollowUpKind.THREAD else FollowUpKind.COMMENT
    return FollowUpRule(kind=kind, most=message.most, text=_text_rule(message.text))


def _destination_rule(message: channel_pb2.DestinationRule) -> DestinationRule:
    return DestinationRule(pattern=message.pattern, description=message.description, is_required=message.required)
