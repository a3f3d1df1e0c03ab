"""Targets, which every message names alike."""

from collections.abc import Sequence
from dataclasses import replace

import channels
from postflow.target.v1 import target_pb2
from publisher_service.domain.post_job import Target
from servicekit.faults import InvalidField


def target_from(message: target_pb2.Target) -> Target:
    return Target(social_account_id=message.social_account_id, channel=message.channel, destination=message.destination)


def target_message(target: Target) -> target_pb2.Target:
    return target_pb2.Target(
        social_account_id=target.social_account_id, channel=target.channel, destination=target.destination
    )


def distinct_targets(messages: Sequence[target_pb2.Target], field: str) -> tuple[Target, ...]:
    """Translates targets, with their channels normalised. Raises InvalidField for an unknown one, and for a second."""
    targets: list[Target] = []
    for index, message in enumerate(messages):
        try:
            target = replace(target_from(message), channel=channels.normalise(message.channel))
        except channels.UnknownChannel as unknown:
            raise InvalidField(f"{field}[{index}].channel", str(unknown), reason="UNKNOWN_CHANNEL") from None
        if target in targets:
            raise InvalidField(f"{field}[{index}]", "is named twice")
        targets.append(target)
    return tuple(targets)
