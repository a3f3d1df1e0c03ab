"""The surface of the sandbox that lists the posts of an account: a post is recognized by its text and its time."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from publisher_service.adapters.providers.adapter import Limits, Post, Proof
from publisher_service.adapters.providers.answers import object_of, time_of
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.sandbox_http import SandboxHttp, account_path, classify, found
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.adapters.providers.sandbox_tokens import SandboxOAuth, SandboxTokens
from publisher_service.domain.outcome import Absent, Finding, NoProof, Outcome

# The clock of the sandbox may differ from our own by this much.
_SKEW: Final = timedelta(minutes=1)


class SandboxLookupAdapter:
    name: Final = "sandbox-lookup"
    rules: Final = SANDBOX_RULES
    proof: Final = Proof.LOOKUP

    def __init__(self, origin: HttpOrigin, limits: Limits) -> None:
        self.limits: Final = limits
        self._http = SandboxHttp(origin, limits)
        self.verify = self._http.verify
        self.token_source = SandboxTokens(origin, limits)
        self.oauth = SandboxOAuth(origin, limits)

    async def send(self, post: Post) -> Outcome:
        """Makes one request. The refusal of a duplicate says that this one put nothing out, and no more than that."""
        path = f"{account_path(post.external_account_id)}/updates"
        answer = await self._http.post(path, post, {"X-Reference": post.idempotency_key})
        return classify(answer) if isinstance(answer, Answer) else answer

    async def look(self, post: Post) -> Finding:
        if not post.text or post.since is None:
            return NoProof(message="nothing is known by which the post could be recognized")
        since = post.since - _SKEW
        query = urlencode({"since": since.isoformat()})
        answer = await self._http.get(f"{account_path(post.external_account_id)}/updates?{query}", post.access_token)
        if not isinstance(answer, Answer):
            return answer
        body = object_of(answer.body)
        updates = body.get("updates")
        if not isinstance(updates, list) or body.get("more") is not False:
            return NoProof(message="the list of posts cannot be read, or is not complete")
        hits = list(_hits(updates, post, since))
        if not hits:
            return Absent()
        proof = found(hits[0]) if len(hits) == 1 else None
        return proof or NoProof(message=f"the account has {len(hits)} posts with this text")


def _hits(updates: list[Any], post: Post, since: datetime) -> Iterator[dict[str, Any]]:
    """Yields what may be the post: of its account and place, with its text, and not older than its first request.

    A comment is one below the same post.
    """
    wanted = (post.external_account_id, post.channel, post.destination, post.text, post.follows)
    for each in updates:
        if not isinstance(each, dict):
            continue
        seen = (*(each.get(name) for name in ("account", "channel", "destination", "text")), each.get("follows", ""))
        time = time_of(each.get("create_time"))
        if seen == wanted and (time is None or time >= since):
            yield each
