"""The blind surface of the sandbox: it takes posts, and shows nothing of what it has taken."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from publisher_service.adapters.providers.adapter import Limits, Post, Proof
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.sandbox_http import SandboxHttp, account_path, classify
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.adapters.providers.sandbox_tokens import SandboxOAuth, SandboxTokens
from publisher_service.domain.outcome import Finding, NoProof, Outcome


class SandboxBlindAdapter:
    name: Final = "sandbox-blind"
    rules: Final = SANDBOX_RULES
    proof: Final = Proof.BLIND

    def __init__(self, origin: HttpOrigin, limits: Limits) -> None:
        # No look can prove anything, so a person is asked at once.
        self.limits: Final = replace(limits, unknown_deadline=timedelta(0))
        self._http = SandboxHttp(origin, limits)
        self.verify = self._http.verify
        self.token_source = SandboxTokens(origin, limits)
        self.oauth = SandboxOAuth(origin, limits)

    async def send(self, post: Post) -> Outcome:
        path = f"{account_path(post.external_account_id)}/messages"
        answer = await self._http.post(path, post, {"X-Reference": post.idempotency_key})
        return classify(answer) if isinstance(answer, Answer) else answer

    async def look(self, post: Post) -> Finding:
        return NoProof(message="the sandbox shows nothing of what it was sent")
