"""Targets, which every message names alike."""

from collections.abc import Iterable

from drafts_service.domain.target import Target
from postflow.target.v1 import target_pb2


def targets(messages: Iterable[target_pb2.Target]) -> tuple[Target, ...]:
    return tuple(map(target_from, messages))


def target_from(message: target_pb2.Target) -> Target:
    return Target(social_account_id=message.social_account_id, channel=message.channel, destination=message.destination)


def target_message(target: Target) -> target_pb2.Target:
    return target_pb2.Target(
        social_account_id=target.social_account_id, channel=target.channel, destination=target.destination
    )
