"""What Publisher needs of a provider."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from publisher_service.domain.outcome import Finding, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One request, ready to be sent."""

    external_account_id: str
    access_token: str
    channel: str
    destination: str
    text: str
    idempotency_key: str

    def __repr__(self) -> str:
        """Without the token: a post may end up in a traceback."""
        return f"Post({self.idempotency_key})"


class CredentialsRefused(Exception):
    """The provider does not take these credentials; `args[0]` says why, in words for people."""


class ProviderAway(Exception):
    """The provider did not answer."""


class Provider(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def channels(self) -> tuple[str, ...]: ...

    @property
    def request_timeout(self) -> timedelta: ...

    async def verify(self, external_account_id: str, access_token: str) -> None:
        """Raises CredentialsRefused or ProviderAway."""
        ...

    async def send(self, post: Post) -> Outcome:
        """One request, never repeated here. Whatever is not known for sure is Ambiguous."""
        ...

    async def look(self, post: Post) -> Finding:
        """Is the post that was sent under this key there?"""
        ...
