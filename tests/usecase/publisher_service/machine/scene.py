"""The accounts and drafts of every example, and the times of its processes."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta

from civil.windows import SendWindow
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import Target, job_id
from tests.usecase.publisher_service.replica import CHANNELS

ORG = "acme"
MOST = 3
LEASE = timedelta(seconds=15)
REQUEST = timedelta(seconds=5)
POLICY = Policy(
    retry_first=timedelta(seconds=2),
    retry_cap=timedelta(seconds=30),
    unknown_settle=timedelta(seconds=10),
    unknown_deadline=timedelta(minutes=3),
    lookup_again=timedelta(seconds=5),
)
BEGINNING = datetime(2026, 3, 28, 22, 30, tzinfo=UTC)
"""Half an hour before a midnight in Berlin; the day after it has 23 hours."""
ACCOUNTS = ("keyed", "lookup", "blind")
DRAFTS = {
    "a": ("keyed",),
    "b": ("keyed",),
    "c": ("lookup",),
    "d": ("lookup", "keyed"),
    "e": ("blind", "lookup"),
    "f": ("lookup",),
    "g": ("blind",),
}
"""The accounts of each draft's targets; another draft of that letter follows once it is out: a2, a3."""
DESTINATIONS = {"f": "@page", "g": "@chat"}
"""The destination of the targets of a draft; the others go to the feeds of their accounts."""
FOLLOWED = "be"
"""The drafts whose posts have a comment each."""
BRANDS = {"a": "bakery", "d": "bakery", "f": "bakery", "e": "florist"}
CAMPAIGNS = {"b": "spring", "c": "spring", "f": "spring"}
POSTS = [(letter, account) for letter, accounts in DRAFTS.items() for account in accounts]
ZONES = ("", "Europe/Berlin", "America/New_York")
WINDOWS = (
    None,
    SendWindow(days=frozenset(range(7)), start=time(8), end=time(23, 40)),
    SendWindow(days=frozenset(range(1, 6)), start=time(9), end=time(18)),
)
SPACINGS = (None, timedelta(seconds=30), timedelta(minutes=10))


@dataclass
class Draft:
    """A draft, as Drafts and Queue have announced it so far."""

    id: str
    letter: str
    brand: str
    campaign: str
    version: int = 0
    revision: int = 0
    slots: dict[str, Slot] = field(default_factory=dict)
    saved: SavedDraft | None = None

    @property
    def accounts(self) -> tuple[str, ...]:
        return DRAFTS[self.letter]

    def targets(self, *accounts: str) -> tuple[Target, ...]:
        destination = DESTINATIONS.get(self.letter, "")
        return tuple(Target(social_account_id=each, channel=CHANNELS[0], destination=destination) for each in accounts)

    def job_id(self, account: str) -> str:
        return job_id(ORG, self.id, self.targets(account)[0])


def draft_of(letter: str, number: int) -> Draft:
    """Returns the draft that follows so many others of its letter."""
    name = f"{letter}{number + 1}" if number else letter
    return Draft(name, letter, BRANDS.get(letter, ""), CAMPAIGNS.get(letter, ""))
