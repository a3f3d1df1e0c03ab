"""The fake of Telegram fails its clients where the network would."""

import io
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from devstack.networks.telegram import Chat, Telegram
from testkit.clocks import FrozenClock

BOT = "77:secret-0815"


@pytest.fixture
async def network() -> AsyncIterator[Telegram]:
    async with Telegram(clock=FrozenClock()) as opened:
        opened.add_bot(BOT, "example_bot")
        opened.add_chat(Chat(1, "private"))
        yield opened


async def call(network: Telegram, method: str, *, token: str = BOT, **options: Any) -> tuple[int, dict[str, str], Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{network.url}/bot{token}/{method}", **options) as answer,
    ):
        return answer.status, dict(answer.headers), await answer.json()


def message(text: str = "hello", chat: str = "1") -> dict[str, str]:
    return {"chat_id": chat, "text": text}


async def test_the_same_message_is_sent_twice(network: Telegram) -> None:
    for number in (1, 2):
        status, _, body = await call(network, "sendMessage", json=message())
        assert (status, body["result"]["message_id"]) == (200, number)
    assert len(network.effects) == 2


async def test_a_flood_waits_by_header_and_body(network: Telegram) -> None:
    network.flood(network.chats["1"], 4.0)
    status, headers, body = await call(network, "sendMessage", json=message())
    assert (status, headers["Retry-After"], body["parameters"]) == (429, "5", {"retry_after": 5})


async def test_nothing_can_be_read(network: Telegram) -> None:
    status, _, _ = await call(network, "getUpdates", json={})
    assert (status, network.problems) == (404, ["a client asked for getUpdates"])


@pytest.mark.parametrize(
    ("kind", "size", "status"),
    [("photo", 10 << 20, 200), ("photo", (10 << 20) + 1, 413), ("video", (10 << 20) + 1, 200), ("video", 0, 400)],
)
async def test_sizes_of_files_are_checked(network: Telegram, kind: str, size: int, status: int) -> None:
    data = aiohttp.FormData({"chat_id": "1", kind: "attach://file0" if size else "https://example.com/a.mp4"})
    data.add_field("file0", io.BytesIO(bytes(size)), filename="a", content_type="application/octet-stream")
    assert (await call(network, f"send{kind.capitalize()}", data=data))[0] == status
    assert len(network.effects) == (status == 200)


@pytest.mark.parametrize(
    ("fields", "description"),
    [
        (message(chat=""), "Bad Request: chat_id is empty"),
        (message(chat="2"), "Bad Request: chat not found"),
        (message(""), "Bad Request: message text is empty"),
        (message("x" * 4097), "Bad Request: message is too long"),
    ],
)
async def test_a_refusal_has_the_words_of_the_network(
    network: Telegram, fields: dict[str, str], description: str
) -> None:
    status, _, body = await call(network, "sendMessage", json=fields)
    assert (status, body) == (400, {"ok": False, "error_code": 400, "description": description})


async def test_a_bot_is_known_by_its_token(network: Telegram) -> None:
    assert (await call(network, "sendMessage", token="77:other", json=message()))[0] == 401
    await call(network, "sendMessage", json=message(), headers={"X-Token": BOT})
    assert network.problems == ["a token was sent apart from the path"]
