"""The contract of a provider's adapter: how it prepares, sends and looks up posts, and what the provider takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from channels.rules import ChannelRules
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Finding, Outcome
from publisher_service.domain.preparation import Preparing
from servicekit.record import record


class Proof(StrEnum):
    """Class of a provider: what proves whether a post is out once its answer is lost."""

    # A repeat under the same key does nothing; the key may also find the post.
    KEYED = "KEYED"
    # A post is prepared first; the state of what was prepared tells whether it is out.
    CHECKABLE = "CHECKABLE"
    # The posts of an account are listed, and one of them is recognized.
    LOOKUP = "LOOKUP"
    # Nothing: a person has to look.
    BLIND = "BLIND"


_NO_SETTINGS: Mapping[str, str] = {}


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
    # When the run's first request that may have been sent began; None if there is none.
    since: datetime | None = None
    # When the post is to go out: the same in every request of a run.
    schedule_time: datetime | None = None
    title: str = ""
    link: str = ""
    media: tuple[ContentMedia, ...] = ()
    # The name of the post below which this one is a comment, or the next part of a thread; empty for a post of its own.
    follows: str = ""
    # Whose post it is: media is fetched on behalf of an organization.
    organization_id: str = ""
    # What the account was connected with besides its secrets.
    settings: Mapping[str, str] = field(default_factory=lambda: _NO_SETTINGS)

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
    # The longest time of one step of a preparation, such as an upload.
    prepare_timeout: timedelta = timedelta(minutes=5)
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
    # How long after its first request a post may be sent again where a repeat is ignored; None: as long as it is due.
    repeat_window: timedelta | None = None
    # The first wait before the provider is asked how far a post is; later ones grow with the time that has passed.
    check_again: timedelta = timedelta(seconds=5)
    # What was prepared longer ago than this is prepared again.
    handle_life: timedelta = timedelta(hours=23)


class Adapter(Protocol):
    """An adapter of one provider. Only `Provider` calls it, and guards each call."""

    @property
    def name(self) -> str: ...

    @property
    def rules(self) -> Mapping[str, ChannelRules]:
        """The channels that the provider offers, and what it takes on each."""
        ...

    @property
    def proof(self) -> Proof: ...

    @property
    def limits(self) -> Limits: ...

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        """Checks credentials and settings of an account, on behalf of the organization that connects it.

        Raises CredentialsRefused or ProviderDown.
        """
        ...

    async def send(self, post: Post) -> Outcome:
        """Makes the one request that puts the post out, and never repeats it. What is not certain is Ambiguous.

        Requests that only read may follow it, within the time of a request.
        """
        ...

    async def look(self, post: Post) -> Finding:
        """Looks for the post that was sent under this key. Only proof is Found or Absent."""
        ...


@runtime_checkable
class PreparingAdapter(Adapter, Protocol):
    """An adapter that has work to do before a post can be published: uploads, containers, or media to be checked."""

    async def prepare(self, post: Post) -> Preparing:
        """Begins to prepare the post; of one that needs nothing it is Ready at once.

        May be repeated: what was prepared before is left to itself. Nothing of it may be visible.
        """
        ...

    async def check(self, post: Post) -> Preparing:
        """Goes on with the preparation that this handle names: asks how far it is, or takes the next step.

        A step that changes the handle is stored before the next one begins. What is not certain is Delayed.
        """
        ...
