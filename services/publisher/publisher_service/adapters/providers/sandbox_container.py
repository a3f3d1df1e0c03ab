"""The surface of the sandbox that publishes containers: a post is put into one, which is processed and published.

So is a comment: its container names the post that it follows.
"""

from typing import Final
from urllib.parse import quote

from publisher_service.adapters.providers.adapter import Limits, Post, Proof
from publisher_service.adapters.providers.answers import is_post_name, object_of
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.sandbox_http import SandboxHttp, account_path, classify, found
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.adapters.providers.sandbox_tokens import SandboxOAuth, SandboxTokens
from publisher_service.adapters.providers.texts import storable
from publisher_service.domain.outcome import (
    Absent,
    Ambiguous,
    AuthRefused,
    Finding,
    NoProof,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.preparation import CredentialsInvalid, Delayed, Preparing, Processing, Ready, Unfit, Void


class SandboxContainerAdapter:
    name: Final = "sandbox-container"
    rules: Final = SANDBOX_RULES
    proof: Final = Proof.CHECKABLE

    def __init__(self, origin: HttpOrigin, limits: Limits) -> None:
        self.limits: Final = limits
        self._http = SandboxHttp(origin, limits)
        self.verify = self._http.verify
        self.token_source = SandboxTokens(origin, limits)
        self.oauth = SandboxOAuth(origin, limits)

    async def prepare(self, post: Post) -> Preparing:
        path = f"{account_path(post.external_account_id)}/containers"
        answer = await self._http.post(path, post, {"X-Reference": post.idempotency_key})
        if not isinstance(answer, Answer):
            return Delayed(message=str(getattr(answer, "message", "")))
        handle = object_of(answer.body).get("id")
        if answer.status == 201:
            return Processing(handle=handle) if is_post_name(handle) else Delayed(message="the answer names nothing")
        match classify(answer):
            case Rejected(reason=reason, message=message):
                return Unfit(reason=reason, message=message)
            case AuthRefused(message=message):
                return CredentialsInvalid(message=message)
            case RateLimited(message=message, retry_after=wait):
                return Delayed(message=message, retry_after=wait)
            case other:
                return Delayed(message=str(getattr(other, "message", "")))

    async def check(self, post: Post) -> Preparing:
        answer = await self._http.get(_container(post.handle), post.access_token)
        if isinstance(answer, AuthRefused):
            return CredentialsInvalid(message=answer.message)
        if not isinstance(answer, Answer):
            return Delayed(message=answer.message)
        body = object_of(answer.body)
        match body.get("status"):
            case "IN_PROGRESS":
                return Processing(handle=post.handle)
            case "FINISHED":
                return Ready(handle=post.handle)
            case "ERROR":
                return Void(reason="MEDIA_ERROR", message=storable(str(body.get("error"))[:500]))
            case "EXPIRED":
                return Void(reason="CONTAINER_EXPIRED", message="the container has expired")
            case status:
                return Delayed(message=f"the container is {storable(str(status)[:50])}")

    async def send(self, post: Post) -> Outcome:
        """Publishes the container. A refusal that rests on its state is left to the look, which reads that state."""
        path = f"{_container(post.handle)}/publish"
        answer = await self._http.post(path, post, {}, body=False)
        outcome = classify(answer) if isinstance(answer, Answer) else answer
        if isinstance(outcome, Rejected) and outcome.reason.startswith("CONTAINER_"):
            return Ambiguous(reason=outcome.reason, message=outcome.message)
        return outcome

    async def look(self, post: Post) -> Finding:
        if not post.handle:
            return NoProof(message="nobody knows which container was published")
        answer = await self._http.get(_container(post.handle), post.access_token)
        if not isinstance(answer, Answer):
            return answer
        body = object_of(answer.body)
        match body.get("status"):
            case "PUBLISHED":
                return found(body.get("post")) or NoProof(message="the container is published; its post cannot be read")
            case "FINISHED":
                return Absent()
            case "EXPIRED" | "ERROR":
                return Absent(handle_is_void=True)
            case status:
                return NoProof(message=f"the container is {storable(str(status)[:50])}")


def _container(handle: str) -> str:
    return f"/v1/containers/{quote(handle, safe='')}"
