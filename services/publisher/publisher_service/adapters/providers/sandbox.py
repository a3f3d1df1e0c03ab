"""The sandbox: a provider for development, with native idempotency keys and a look-up by key."""

from typing import Final
from urllib.parse import urlencode

from publisher_service.adapters.providers.adapter import Limits, Post, Proof
from publisher_service.adapters.providers.answers import object_of
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.sandbox_http import SandboxHttp, account_path, classify, found
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.adapters.providers.sandbox_tokens import SandboxOAuth, SandboxTokens
from publisher_service.domain.outcome import Absent, Finding, NoProof, Outcome


class SandboxAdapter:
    name: Final = "sandbox"
    rules: Final = SANDBOX_RULES
    proof: Final = Proof.KEYED

    def __init__(self, origin: HttpOrigin, limits: Limits) -> None:
        self.limits: Final = limits
        self._http = SandboxHttp(origin, limits)
        self.verify = self._http.verify
        self.token_source = SandboxTokens(origin, limits)
        self.oauth = SandboxOAuth(origin, limits)

    async def send(self, post: Post) -> Outcome:
        path = f"{account_path(post.external_account_id)}/posts"
        answer = await self._http.post(path, post, {"Idempotency-Key": post.idempotency_key})
        return classify(answer) if isinstance(answer, Answer) else answer

    async def look(self, post: Post) -> Finding:
        wanted = urlencode({"account": post.external_account_id, "idempotency_key": post.idempotency_key})
        answer = await self._http.get(f"/v1/posts?{wanted}", post.access_token)
        if not isinstance(answer, Answer):
            return answer
        posts = object_of(answer.body).get("posts")
        if not isinstance(posts, list):
            return NoProof(message="the look-up's answer cannot be read")
        if not posts:
            return Absent()
        proof = found(posts[0]) if len(posts) == 1 else None
        return proof or NoProof(message=f"the look-up found {len(posts)} posts under one key")
