"""The contract of a provider's adapter: how to send and look up posts there, and the limits of the provider."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from publisher_service.domain.outcome import Finding, Outcome
from publisher_service.domain.preparation import Preparing
from servicekit.record import record


class Proof(StrEnum):
    """Class of a provider: what proves whether a post is out once its answer is lost."""

    # A repeat under the same key does nothing, and the key finds the post.
    KEYED = "KEYED"
    # A post is prepared first; the state of what was prepared tells whether it is out.
    CHECKABLE = "CHECKABLE"
    # The posts of an account are listed, and one of them is recognized.
    LOOKUP = "LOOKUP"
    # Nothing: a person has to look.
    BLIND = "BLIND"


@record(frozen=True, slots=True, kw_only=True)
class Post:
    """One request, ready to be sent; in a look, the request that may have been sent."""

    external_account_id: str
    access_token: str
    channel: str
    destination: str
    # Empty in a look if the bytes are lost.
    text: str
    idempotency_key: str
    # What the provider has prepared for this post; empty if it prepares nothing.
    handle: str = ""
    # In a look: when the first request that may have been sent began.
    since: datetime | None = None

    def __repr__(self) -> str:
        """Leaves out the token: a post may end up in a traceback."""
        return f"Post({self.idempotency_key})"


class CredentialsRefused(Exception):
    """The provider refuses these credentials; `args[0]` says why, in words for people."""


class ProviderDown(Exception):
    """The provider did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a provider, and how soon it can prove something."""

    # The longest time of one request.
    request_timeout: timedelta
    # After an ambiguous end a look proves nothing for this long.
    unknown_settle: timedelta = timedelta(minutes=2)
    # How long an unknown outcome is looked up before a person is asked; zero where no look can prove anything.
    unknown_deadline: timedelta = timedelta(hours=1)
    # The wait after a look that proved nothing.
    lookup_again: timedelta = timedelta(seconds=30)
    # Requests at once.
    senders: int = 64
    # Looks at once.
    lookers: int = 8
    # Posts that are being prepared at once.
    preparers: int = 8
    # The first wait before the provider is asked how far a post is; later ones grow with the time that has passed.
    check_again: timedelta = timedelta(seconds=5)
    # What was prepared longer ago than this is prepared again.
    handle_life: timedelta = timedelta(hours=23)


class Adapter(Protocol):
    """An adapter of one provider. Only `Provider` calls it, and guards each call."""

    @property
    def name(self) -> str: ...

    @property
    def channels(self) -> tuple[str, ...]: ...

    @property
    def proof(self) -> Proof: ...

    @property
    def limits(self) -> Limits: ...

    async def verify(self, external_account_id: str, access_token: str) -> None:
        """Checks credentials. Raises CredentialsRefused or ProviderDown."""
        ...

    async def send(self, post: Post) -> Outcome:
        """Makes one request and never repeats it. Anything that is not certain is Ambiguous."""
        ...

    async def look(self, post: Post) -> Finding:
        """Looks for the post that was sent under this key. Only proof is Found or Absent."""
        ...


class PreparingAdapter(Adapter, Protocol):
    """An adapter whose provider prepares a post before it publishes it; its class is CHECKABLE."""

    async def prepare(self, post: Post) -> Preparing:
        """Has the provider prepare the post. May be repeated: what was prepared before is left to itself."""
        ...

    async def check(self, post: Post) -> Preparing:
        """Asks how far the post is that has this handle. Anything that is not certain is Delayed."""
        ...
