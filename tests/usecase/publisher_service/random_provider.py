"""A provider that answers at random, for histories of posts."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
    NoProof,
    NotBegun,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)

Key = str


@dataclass
class RandomProvider:
    """A provider whose answers are drawn, and what was really requested under each idempotency key."""

    dice: random.Random
    max_attempts: int
    requests: defaultdict[Key, int] = field(default_factory=lambda: defaultdict(int))
    doubtful: dict[Key, bytes] = field(default_factory=dict)
    denied: set[Key] = field(default_factory=set)
    effects: set[Key] = field(default_factory=set)

    def request(self, claimed: Claimed) -> Outcome | None:
        """Makes a request; returns None where the answer is lost with the process."""
        key, content = claimed.idempotency_key, claimed.content
        assert self.doubtful.get(key, content) == content, "other content under a key that may be out"
        outcome = self.dice.choice(OUTCOMES)
        if isinstance(outcome, NotSent | NotBegun):
            return outcome
        if not isinstance(outcome, RateLimited | AuthRefused):
            self.requests[key] += 1
            assert self.requests[key] <= self.max_attempts
        if isinstance(outcome, Ambiguous | None):
            self.doubtful[key] = content
            if self.dice.random() < 0.3:
                self.effects.add(key)
        if isinstance(outcome, Accepted):
            self.effects.add(key)
            return replace(outcome, external_id=key)
        return outcome

    def look(self, key: Key) -> Finding:
        if self.dice.random() < 0.3:
            return NoProof(message="m") if self.dice.random() < 0.5 else AuthRefused(message="m")
        # A post may appear after the look-up that missed it.
        if key in self.effects and self.dice.random() < 0.5:
            return Found(external_id=key, external_url="")
        return Absent()


OUTCOMES: Sequence[Outcome | None] = [
    None,
    None,
    Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="m"),
    Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="m"),
    Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="m"),
    Rejected(reason="STATUS_422", message="m"),
    NotSent(reason="CONNECTION_REFUSED", message="m"),
    NotBegun(reason="LEASE_TOO_SHORT", message="m"),
    NotBegun(reason="CREDENTIALS_UNREADABLE", message="m"),
    RateLimited(message="m", retry_after=timedelta(seconds=20)),
    AuthRefused(message="m"),
    Accepted(external_id="", external_url=""),
]


class RandomAdapter:
    """Looks posts up at the random provider."""

    name = "sandbox"
    rules = SANDBOX_RULES
    proof = Proof.KEYED
    limits = Limits(request_timeout=timedelta(seconds=5))

    def __init__(self, provider: RandomProvider) -> None:
        self._provider = provider

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        pass

    async def send(self, post: Post) -> Outcome:
        raise AssertionError("a history makes its requests itself")

    async def look(self, post: Post) -> Finding:
        return self._provider.look(post.idempotency_key)
