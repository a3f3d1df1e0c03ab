"""The error for messages that cannot be used."""

from servicekit.faults import InvalidRequest


class UnreadableMessage(InvalidRequest):
    """The message cannot be decoded, or lacks what it must say."""

    def __init__(self, message: str) -> None:
        super().__init__("MALFORMED_EVENT", message)
