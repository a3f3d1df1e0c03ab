"""Arguments of the rows that a claim, or an explanation, looks at."""

from collections.abc import Sequence
from datetime import datetime

from channels import action_of
from publisher_service.domain.claim import Command, Lane
from publisher_service.domain.limits import DEFAULTS, LimitDefaults


def looked_at_arguments(
    commands: Sequence[Command],
    lanes: Sequence[Lane],
    *,
    now: datetime,
    from_line: bool,
    limits: LimitDefaults = DEFAULTS,
) -> dict[str, object]:
    """Returns the arguments of the rows that are looked at, and of the checks."""
    return {
        "organization_ids": [each.organization_id for each in commands],
        "ids": [each.post_job_id for each in commands],
        "slot_sequences": [each.slot_sequence for each in commands],
        "slot_ids": [each.slot_id for each in commands],
        "slot_revisions": [each.slot_revision for each in commands],
        "schedule_times": [each.schedule_time for each in commands],
        "not_afters": [each.not_after for each in commands],
        "content_revisions": [each.content_revision for each in commands],
        "max_attempts": [each.max_attempts for each in commands],
        "traceparents": [each.traceparent for each in commands],
        "target_months": [each.target_month for each in commands],
        "known_job_versions": [each.known_job_version for each in commands],
        "actions": [action_of(each.target.channel, each.target.destination) for each in commands],
        "capped_actions": list(limits.caps),
        "default_caps": list(limits.caps.values()),
        "outreach_spacing": limits.outreach_spacing,
        "from_line": from_line,
        "providers": [lane.provider for lane in lanes],
        "rooms": [lane.room for lane in lanes],
        **crowded_arrays(lanes),
        "preparing": [lane.provider for lane in lanes if lane.prepares],
        "now": now,
    }


def crowded_arrays(lanes: Sequence[Lane]) -> dict[str, list[str]]:
    """Returns the organizations that get nothing now, each with its provider; nearly always there are none."""
    crowded = [(lane.provider, each) for lane in lanes for each in lane.crowded]
    return {"crowded_providers": [provider for provider, _ in crowded], "crowded": [each for _, each in crowded]}
