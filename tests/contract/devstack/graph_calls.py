"""Calls of the fakes of Meta's networks, as a client makes them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from devstack.networks.meta import APP_ID, APP_SECRET, MetaNetwork

TOKEN = "sandbox-1"


class GraphCalls:
    def __init__(self, network: MetaNetwork) -> None:
        self._network = network

    async def get(self, path: str, token: str = TOKEN, **query: str) -> tuple[int, Any]:
        return await self._call("GET", path, token, params=query)

    async def post(self, path: str, token: str = TOKEN, **fields: str) -> tuple[int, Any]:
        return await self._call("POST", path, token, data=fields)

    async def code_of(self, path: str, **fields: str) -> tuple[int, int | None]:
        """Returns the code and the subcode of the error that answers a POST."""
        _, body = await self.post(path, **fields)
        return body["error"]["code"], body["error"].get("error_subcode")

    async def exchanged(self, **given: str) -> tuple[int, Any]:
        """Calls `oauth/access_token` for the application."""
        return await self.get("v25.0/oauth/access_token", "", client_id=APP_ID, client_secret=APP_SECRET, **given)

    async def dialog(self, **query: str) -> Mapping[str, str]:
        """Lets the user agree; returns the query of the address that the browser is sent back to."""
        url = f"{self._network.url}/v25.0/dialog/oauth"
        async with aiohttp.request("GET", url, params=query, allow_redirects=False) as answer:
            assert answer.status == 302, await answer.text()
            return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))

    async def _call(self, method: str, path: str, token: str, **content: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"{self._network.url}/{path}"
        async with aiohttp.request(method, url, headers=headers, **content) as answer:
            return answer.status, await answer.json()
