"""The form of mails: that of SMTP, but for a header that is read by programs, and never encoded."""

from email.headerregistry import BaseHeader, HeaderRegistry, UnstructuredHeader
from email.policy import SMTP, Policy
from typing import Final


class _AsItIs(UnstructuredHeader, BaseHeader):
    """A header of ASCII without white space, on one line however long it is.

    The library would write one of more than 78 characters as encoded words (RFC 2047), which no program takes for URLs.
    """

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


def _headers() -> HeaderRegistry:
    registry = HeaderRegistry()
    registry.map_to_type("list-unsubscribe", _AsItIs)
    return registry


POLICY: Final = SMTP.clone(header_factory=_headers())
