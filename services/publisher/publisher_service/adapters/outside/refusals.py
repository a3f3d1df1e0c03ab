"""The ends of a call to an address that a user named, other than an answer."""

from enum import StrEnum

from servicekit.faults import InvalidField


class AddressReason(StrEnum):
    URL_TOO_LONG = "URL_TOO_LONG"
    URL_MALFORMED = "URL_MALFORMED"
    URL_NOT_HTTPS = "URL_NOT_HTTPS"
    URL_HAS_PORT = "URL_HAS_PORT"
    URL_HAS_CREDENTIALS = "URL_HAS_CREDENTIALS"
    URL_IP_ADDRESS = "URL_IP_ADDRESS"
    URL_PRIVATE = "URL_PRIVATE"


class AddressRefused(Exception):
    """The rules forbid this URL or host: calling it again changes nothing, unless its DNS records change."""

    def __init__(self, reason: AddressReason, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message

    def as_fault(self, field: str) -> InvalidField:
        """Returns the refusal of a request whose field has this address."""
        return InvalidField(field, self.message, reason=self.reason.value)


class Unreachable(Exception):
    """No connection was made: not one byte of a request has left. It may work later."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class AnswerLost(Exception):
    """The request may have left, but its answer broke off, came too late, or is no HTTP."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
