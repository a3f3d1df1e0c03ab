"""Targets: an account, a channel and a destination."""

from collections.abc import Iterable

from postflow.target.v1 import target_pb2
from queue_service.domain.draft import Target


def target(social_account_id: str, channel: str, destination: str) -> target_pb2.Target:
    return target_pb2.Target(social_account_id=social_account_id, channel=channel, destination=destination)


def targets(messages: Iterable[target_pb2.Target]) -> tuple[Target, ...]:
    return tuple(
        Target(social_account_id=each.social_account_id, channel=each.channel, destination=each.destination)
        for each in messages
    )
