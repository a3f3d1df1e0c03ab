"""HTTP/1.1 as the sandbox provider speaks it: requests in pieces, in packets together, and malformed."""

import asyncio
import json
import re

import pytest

from devstack.sandbox.provider import Sandbox
from tests.contract.devstack.sandbox_calls import POST, Client, entries


class TestProtocol:
    async def _exchange(self, sandbox: Sandbox, *parts: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(sandbox.host, sandbox.port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            async with asyncio.timeout(5):
                return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()

    @pytest.mark.parametrize(
        ("request_bytes", "status"),
        [
            (b"nonsense\r\n\r\n", 400),
            (b"GET / SPDY/3\r\n\r\n", 400),
            (b"GET /control/health HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            (b"POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", 413),
            (b"GET / HTTP/1.1\r\nLong: " + b"x" * 20_000, 431),
        ],
    )
    async def test_what_is_not_a_request_is_refused_and_the_connection_closed(
        self, sandbox: Sandbox, request_bytes: bytes, status: int
    ) -> None:
        answer = await self._exchange(sandbox, request_bytes)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert b"Connection: close" in answer

    async def test_requests_in_one_packet_are_answered_in_order(self, sandbox: Sandbox) -> None:
        body = json.dumps(POST).encode()
        post = b"POST /v1/accounts/a1/posts HTTP/1.1\r\nAuthorization: Bearer sandbox-x\r\n"
        post += b"Content-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        health = b"GET /control/health HTTP/1.1\r\nConnection: close\r\n\r\n"
        answer = await self._exchange(sandbox, post + post + health)
        assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"201", b"200", b"200"]

    async def test_a_request_in_many_packets_is_one_request(self, sandbox: Sandbox) -> None:
        body = json.dumps(POST).encode()
        text = b"POST /v1/accounts/a1/posts HTTP/1.0\r\nAuthorization: Bearer sandbox-x\r\n"
        text += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        answer = await self._exchange(sandbox, *(text[at : at + 7] for at in range(0, len(text), 7)))
        assert answer.startswith(b"HTTP/1.1 201 ")

    async def test_a_client_that_expects_100_continue_gets_it(self, sandbox: Sandbox) -> None:
        head = b"POST /v1/accounts/a1/posts HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
        head += b"Connection: close\r\n\r\n"
        reader, writer = await asyncio.open_connection(sandbox.host, sandbox.port)
        writer.write(head)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"{}")
        assert (await reader.read()).startswith(b"HTTP/1.1 401 ")
        writer.close()
        await writer.wait_closed()

    async def test_many_at_once_are_all_served(self, client: Client, sandbox: Sandbox) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(client.post(key=str(number)))
        assert len(entries(sandbox, "effect")) == 200
