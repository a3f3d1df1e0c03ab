"""Targets of a draft: the account that posts, and the channel it posts to."""

from collections.abc import Sequence
from dataclasses import replace

from channels import UnknownChannel, normalise
from servicekit.faults import InvalidField
from servicekit.record import record

MOST_TARGETS = 25


@record(frozen=True, slots=True, kw_only=True)
class Target:
    social_account_id: str
    channel: str
    destination: str = ""


def checked_targets(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Returns the targets with normalised channels; refuses an empty list and duplicates."""
    if not 1 <= len(targets) <= MOST_TARGETS:
        raise InvalidField("draft.targets", f"a draft has 1 to {MOST_TARGETS} targets")
    seen: dict[Target, int] = {}
    for index, given in enumerate(targets):
        target = replace(given, channel=known_channel(given.channel, f"draft.targets[{index}].channel"))
        if target in seen:
            raise InvalidField(f"draft.targets[{index}]", f"is the same as draft.targets[{seen[target]}]")
        seen[target] = index
    return tuple(seen)


def known_channel(name: str, field: str) -> str:
    """Returns the channel's normalised name; refuses an unknown one, naming the request's field."""
    try:
        return normalise(name)
    except UnknownChannel as unknown:
        raise InvalidField(field, str(unknown), reason="UNKNOWN_CHANNEL") from None
