"""Calls of the sandbox provider, as its clients make them."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from devstack.http_call import http_call
from devstack.sandbox.provider import Sandbox
from testkit.eventually import eventually

POST = {"channel": "facebook", "destination": "page-1", "text": "Good morning"}


class Client:
    def __init__(self, url: str) -> None:
        self.url = url

    async def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        sent = {"Content-Type": "application/json", "Authorization": "Bearer sandbox-token", **(headers or {})}
        answer = await http_call(method, self.url + path, body=data, headers=sent, within=5)
        match answer.headers["content-type"]:
            case "application/json":
                return answer.status, json.loads(answer.text)
            case "application/x-ndjson":
                return answer.status, [json.loads(line) for line in answer.text.splitlines()]
            case _:
                return answer.status, answer.text

    async def post(self, key: str = "k1", account: str = "a1", **changes: object) -> tuple[int, Any]:
        return await self.call("POST", f"/v1/accounts/{account}/posts", POST | changes, {"Idempotency-Key": key})

    async def lost_post(self, key: str = "k1") -> None:
        """Sends a post whose client is cut off, or gives up once a rule has struck."""
        _, rules = await self.call("GET", "/control/faults")

        async def is_struck() -> bool:
            return bool((await self.call("GET", "/control/faults"))[1] != rules)

        async with asyncio.TaskGroup() as group:
            lost = group.create_task(self._fails(key))
            await eventually(is_struck)
            lost.cancel()

    async def _fails(self, key: str) -> None:
        with pytest.raises(ConnectionError):
            await self.post(key)

    async def faults(self, *rules: Mapping[str, object]) -> None:
        status, answer = await self.call("PUT", "/control/faults", list(rules))
        assert status == 200, answer

    async def look_up(self, key: str = "k1", account: str = "a1") -> list[Any]:
        status, answer = await self.call("GET", f"/v1/posts?account={account}&idempotency_key={key}")
        assert status == 200, answer
        found: list[Any] = answer["posts"]
        return found

    async def ledger(self, since: int = 0) -> list[Any]:
        status, answer = await self.call("GET", f"/control/ledger?since={since}")
        assert status == 200
        entries: list[Any] = answer
        return entries


def entries(sandbox: Sandbox, kind: str) -> list[Any]:
    lines = [json.loads(line) for line in sandbox.path.read_text().splitlines()]
    return [entry for entry in lines if entry["kind"] == kind]
