"""Fields without which an event cannot be applied."""

from servicekit.faults import InvalidRequest


def required(value: str, field: str) -> str:
    """Returns the value. Refuses an empty one: the consumer parks the event, and a newer release can redrive it."""
    if not value:
        raise InvalidRequest("MALFORMED_EVENT", f"an event without its {field}")
    return value
