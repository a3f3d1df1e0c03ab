"""Calls of the sandbox provider, as its clients make them."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from devstack.sandbox.provider import Sandbox
from testkit.eventually import eventually

POST = {"channel": "facebook", "destination": "page-1", "text": "Good morning"}


class Client:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        sent = {"Content-Type": "application/json", "Authorization": "Bearer sandbox-token", **(headers or {})}
        async with self._session.request(method, self.url + path, data=data, headers=sent) as response:
            text = await response.text()
            match response.content_type:
                case "application/json":
                    return response.status, json.loads(text)
                case "application/x-ndjson":
                    return response.status, [json.loads(line) for line in text.splitlines()]
                case _:
                    return response.status, text

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
        with pytest.raises(aiohttp.ClientConnectionError):
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
