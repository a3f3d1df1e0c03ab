"""The secrets of an account."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The secrets with which an account posts; empty ones are not there."""

    # Sent with each request.
    access_token: str
    # Gets the next access token.
    refresh_token: str = ""
    # Of the person who granted the access, at providers that read the tokens of pages with it.
    user_token: str = ""

    def __repr__(self) -> str:
        """Leaves out the secrets: credentials may end up in a traceback."""
        return "Credentials(***)"

    @property
    def is_bare(self) -> bool:
        """Returns whether there is nothing but an access token."""
        return not (self.refresh_token or self.user_token)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.access_token, self.refresh_token, self.user_token)))


ERASED: Final = Credentials(access_token="")
"""The credentials of an account that has none any more: sealed like any other, they open nothing."""
