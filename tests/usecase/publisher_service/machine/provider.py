"""A scripted provider of three classes, which remembers what is out."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from publisher_service.adapters.providers.adapter import Limits, Post, Proof
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.domain.claim import Claimed
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    Level,
    NoProof,
    NotBegun,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)

PAUSE = timedelta(seconds=20)
CLOSED = ("rate limited", "channel limited")
OUT = Accepted(external_id="", external_url="")
LOST = Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="m")
ANSWERS: dict[str, Outcome] = {
    "accepted": OUT,
    "out and lost": LOST,
    "lost": LOST,
    "out and silent": LOST,
    "silent": LOST,
    "rejected": Rejected(reason="STATUS_422", message="m"),
    "peer blocked": Rejected(reason="PEER_BLOCKED", message="m", peer_blocked=True),
    "not sent": NotSent(reason="CONNECTION_REFUSED", message="m"),
    "not begun": NotBegun(reason="LEASE_TOO_SHORT", message="m"),
    "rate limited": RateLimited(message="m", retry_after=PAUSE),
    "channel limited": RateLimited(message="m", retry_after=PAUSE, level=Level.CHANNEL),
    "auth refused": AuthRefused(message="m"),
}
"""An effect is out after `accepted` and `out and ...`; after `... silent` the process dies with the answer."""


@dataclass
class ScriptedProvider:
    """The classes of accounts are the first part of their names: keyed, lookup, blind."""

    effects: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    # The bytes that may be out under a key.
    doubtful: dict[str, bytes] = field(default_factory=dict)
    looks_fail: bool = False

    def forget(self) -> None:
        self.effects.clear()
        self.doubtful.clear()
        self.looks_fail = False

    def request(self, claimed: Claimed, answer: str) -> Outcome:
        key = claimed.idempotency_key
        if "out" in answer.split() or answer == "accepted":
            self._put_out(key, claimed.job.target.social_account_id)
        if answer not in ("not sent", "not begun"):
            assert self.doubtful.get(key, claimed.content) == claimed.content, "other bytes under a doubtful key"
        if ANSWERS[answer] is LOST:
            self.doubtful[key] = claimed.content
        outcome = ANSWERS[answer]
        return replace(outcome, external_id=self.effects[key][-1]) if isinstance(outcome, Accepted) else outcome

    def _put_out(self, key: str, account: str) -> None:
        if not (account.startswith("keyed") and self.effects[key]):
            self.effects[key].append(f"{key}#{len(self.effects[key])}")

    # as an adapter

    name = "sandbox"
    rules = SANDBOX_RULES
    proof = Proof.KEYED
    limits = Limits(request_timeout=timedelta(seconds=5))

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        pass

    async def send(self, post: Post) -> Outcome:
        raise AssertionError("the machine makes the requests itself")

    async def look(self, post: Post) -> Finding:
        """Looks truthfully, unless looks fail; the class is in the text of the post."""
        if self.looks_fail or post.text.startswith("blind"):
            return NoProof(message="m")
        effects = self.effects.get(post.idempotency_key)
        return Found(external_id=effects[0], external_url="") if effects else Absent()
