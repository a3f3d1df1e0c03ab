"""What the author of a provider writes: how posts are sent there and looked up, and what is known of it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from publisher_service.domain.outcome import Finding, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One request, ready to be sent; for a look, that which may have been sent."""

    external_account_id: str
    access_token: str
    channel: str
    destination: str
    # Empty in a look when the bytes are lost.
    text: str
    idempotency_key: str

    def __repr__(self) -> str:
        """Without the token: a post may end up in a traceback."""
        return f"Post({self.idempotency_key})"


class CredentialsRefused(Exception):
    """The provider does not take these credentials; `args[0]` says why, in words for people."""


class ProviderAway(Exception):
    """The provider did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a provider needs, and what it can prove."""

    # Of one request.
    request_timeout: timedelta
    # How long after an ambiguous end a look proves anything.
    unknown_settle: timedelta = timedelta(minutes=2)
    # How long an unknown outcome is looked up before a person is asked; zero where no look can prove anything.
    unknown_deadline: timedelta = timedelta(hours=1)
    # The wait after a look that proved nothing.
    lookup_again: timedelta = timedelta(seconds=30)
    # Requests at once.
    senders: int = 64
    # Looks at once.
    lookers: int = 8


class Adapter(Protocol):
    """Only `Provider` calls these: it guards each call, whatever the adapter does."""

    @property
    def name(self) -> str: ...

    @property
    def channels(self) -> tuple[str, ...]: ...

    @property
    def limits(self) -> Limits: ...

    async def verify(self, external_account_id: str, access_token: str) -> None:
        """Raises CredentialsRefused or ProviderAway."""
        ...

    async def send(self, post: Post) -> Outcome:
        """Makes one request and never repeats it. Whatever is not known for sure is Ambiguous."""
        ...

    async def look(self, post: Post) -> Finding:
        """Says whether the post that was sent under this key is there. Only proof is Found or Absent."""
        ...
