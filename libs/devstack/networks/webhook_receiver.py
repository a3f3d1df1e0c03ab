"""A receiver of webhooks as Standard Webhooks wants one: it verifies signatures, and ignores an id that it has seen."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from aiohttp import web

from devstack.networks.network import Network, operation
from servicekit.clock import Clock

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
_TOLERANCE = 300.0


class WebhookReceiver(Network):
    """Serves `/hook`. Names posts by their `webhook-id`, or as `names` has it."""

    name: ClassVar[str] = "webhook"

    def __init__(self, ledger: Path | None = None, clock: Clock | None = None, *, secret: str = SECRET) -> None:
        super().__init__(ledger, clock)
        self.secret = secret
        self.seen: dict[str, bytes] = {}
        self.pings = 0
        # What the answer to an id says besides its status.
        self.answers: dict[str, Mapping[str, Any]] = {}

    def furnish(self) -> str:
        """Returns the address and the secret."""
        return f"connect with the secret {self.secret} and settings.url {self.url}/hook"

    def routes(self) -> Iterable[web.RouteDef]:
        return (web.post("/hook", self._take),)

    def rate_limited(self, request: web.Request, seconds: float) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": str(int(seconds))})

    def refused(self, request: web.Request) -> web.Response:
        return web.json_response({"message": "no such place"}, status=422)

    def error(self) -> Mapping[str, Any]:
        return {"error": "something went wrong"}

    @operation("receive")
    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        if (fault := self._unverified(request.headers, body)) is not None:
            self.problem(fault)
            return web.json_response({"message": fault}, status=401)
        message_id = request.headers["webhook-id"]
        if (before := self.seen.get(message_id)) is not None:
            if before != body:
                self.problem(f"another body under the id {message_id}")
            return self._answer(message_id)
        self.seen[message_id] = body
        self._act(message_id, json.loads(body))
        return self._answer(message_id)

    def _act(self, message_id: str, message: Mapping[str, Any]) -> None:
        if message.get("type") == "ping":
            self.pings += 1
            return
        if message.get("id") != message_id:
            self.problem("the body names another id than its header")
        self.effect(
            "",
            id=message_id,
            channel=message.get("channel"),
            destination=message.get("destination"),
            text=message.get("text"),
            media=[each.get("sha256") for each in message.get("media", [])],
        )

    def _answer(self, message_id: str) -> web.Response:
        return web.json_response(self.answers.get(message_id, {}))

    def _unverified(self, headers: Mapping[str, str], body: bytes) -> str | None:
        """Returns what is wrong with a signature, as a receiver of the standard finds it."""
        message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not (message_id and timestamp.isdigit()):
            return "the headers of the standard are missing"
        if abs(self.clock.now().timestamp() - int(timestamp)) > _TOLERANCE:
            return "the timestamp is not of now"
        key = base64.b64decode(self.secret.removeprefix("whsec_"))
        digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
        expected = f"v1,{base64.b64encode(digest).decode()}"
        given = headers.get("webhook-signature", "").split()
        return None if any(hmac.compare_digest(each, expected) for each in given) else "no signature fits"
