"""Counts and logs destinations that have become inactive."""

import logging
from collections.abc import Iterable

from opentelemetry import metrics

from publisher_service.domain.destination import Deactivation, DestinationReason
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_meter = metrics.get_meter(__name__)
_deactivated = from_zero(
    _meter.create_counter(
        "postflow.publish.destinations_deactivated", description="Destinations that were deactivated, by reason"
    ),
    *({"reason": reason} for reason in DestinationReason if reason),
)


def report_deactivated(destinations: Iterable[Deactivation]) -> None:
    """Reports them without their names: these may be addresses of people. ListDestinations shows them."""
    for each in destinations:
        _deactivated.add(1, {"reason": each.reason})
        fields = {
            "organization_id": each.organization_id,
            "social_account_id": each.social_account_id,
            "channel": each.channel,
            "reason": each.reason,
        }
        _log.warning("destination deactivated", extra=fields)
