"""The surfaces of the sandbox provider that behave like other classes of networks; libs/devstack/README.md."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from devstack.http_call import http_call
from devstack.sandbox.provider import Sandbox
from testkit.clocks import FrozenClock
from tests.contract.devstack.sandbox_calls import POST, Client, entries

CONTAINERS, UPDATES, MESSAGES = (f"/v1/accounts/a1/{name}" for name in ("containers", "updates", "messages"))


@pytest.fixture
async def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def sandbox(tmp_path: Path, clock: FrozenClock) -> AsyncIterator[Sandbox]:
    async with Sandbox(tmp_path / "classes.jsonl", clock) as sandbox:
        yield sandbox


async def make(client: Client) -> str:
    status, answer = await client.call("POST", CONTAINERS, POST, {"X-Reference": "job-1"})
    assert status == 201, answer
    return str(answer["id"])


async def status_of(client: Client, container: str) -> str:
    status, answer = await client.call("GET", f"/v1/containers/{container}")
    assert status == 200
    return str(answer["status"])


async def publish(client: Client, container: str) -> tuple[int, Any]:
    return await client.call("POST", f"/v1/containers/{container}/publish")


class TestContainers:
    async def test_a_container_is_processed_and_then_published_once(
        self, client: Client, sandbox: Sandbox, clock: FrozenClock
    ) -> None:
        await client.call("PUT", "/control/accounts/a1", {"media_seconds": 60})
        container = await make(client)
        assert await status_of(client, container) == "IN_PROGRESS"
        status, answer = await publish(client, container)
        assert (status, answer["error"]["code"]) == (400, "CONTAINER_IN_PROGRESS")
        clock.advance(timedelta(seconds=60))
        assert await status_of(client, container) == "FINISHED"
        assert entries(sandbox, "effect") == []
        status, answer = await publish(client, container)
        (effect,) = entries(sandbox, "effect")
        assert (status, answer["id"]) == (201, effect["id"])
        assert (effect["text"], effect["idempotency_key"], effect["container"]) == (POST["text"], "job-1", container)
        status, answer = await publish(client, container)
        assert (status, answer["error"]["code"]) == (400, "CONTAINER_PUBLISHED")
        _, shown = await client.call("GET", f"/v1/containers/{container}")
        assert (shown["status"], shown["post"]["id"]) == ("PUBLISHED", effect["id"])
        assert "idempotency_key" not in shown["post"]
        assert len(entries(sandbox, "effect")) == 1

    async def test_a_container_expires_and_may_fail(self, client: Client, clock: FrozenClock) -> None:
        await client.faults({"fault": "media", "operation": "container", "error": "2207026: bad format", "count": 1})
        failed, good = await make(client), await make(client)
        _, shown = await client.call("GET", f"/v1/containers/{failed}")
        assert (shown["status"], shown["error"]) == ("ERROR", "2207026: bad format")
        assert (await publish(client, failed))[0] == 400
        clock.advance(timedelta(hours=24))
        assert await status_of(client, good) == "EXPIRED"
        status, answer = await publish(client, good)
        assert (status, answer["error"]["code"]) == (400, "CONTAINER_EXPIRED")

    async def test_a_restarted_provider_knows_its_containers(
        self, client: Client, sandbox: Sandbox, clock: FrozenClock
    ) -> None:
        first, second = await make(client), await make(client)
        await publish(client, first)
        await sandbox.stop()
        async with Sandbox(sandbox.path, clock) as again:
            other = Client(again.url)
            assert await status_of(other, first) == "PUBLISHED"
            assert (await publish(other, first))[0] == 400
            assert (await publish(other, second))[0] == 201
            assert (await other.call("GET", "/v1/containers/sc-99"))[0] == 404

    async def test_an_effect_may_be_hidden_by_a_lost_answer(self, client: Client, sandbox: Sandbox) -> None:
        container = await make(client)
        await client.faults({"fault": "status", "effect": True, "count": 1})
        assert (await publish(client, container))[0] == 503
        assert await status_of(client, container) == "PUBLISHED"
        assert len(entries(sandbox, "effect")) == 1


class TestUpdates:
    async def test_posts_are_listed_newest_first_after_a_lag(self, client: Client, clock: FrozenClock) -> None:
        await client.call("PUT", "/control/accounts/a1", {"visibility_lag": 10})
        for text in ("one", "two", "three"):
            clock.advance(timedelta(seconds=5))
            await client.call("POST", UPDATES, POST | {"text": text}, {"X-Reference": "job-1"})
        seen = await self._listed(client)
        assert [each["text"] for each in seen] == ["one"]
        assert "idempotency_key" not in seen[0]
        clock.advance(timedelta(seconds=10))
        assert [each["text"] for each in await self._listed(client)] == ["three", "two", "one"]
        since = seen[0]["create_time"].replace("+", "%2B")
        assert len(await self._listed(client, f"?since={since}")) == 3
        assert (await client.call("GET", UPDATES + "?since=yesterday"))[0] == 422

    async def test_every_request_makes_a_post(self, client: Client, sandbox: Sandbox) -> None:
        for _ in range(2):
            assert (await client.call("POST", UPDATES, POST, {"X-Reference": "job-1"}))[0] == 201
        assert len(entries(sandbox, "effect")) == 2
        assert await client.look_up("job-1") == []

    async def test_a_duplicate_is_refused_and_names_the_post(self, client: Client, sandbox: Sandbox) -> None:
        await client.call("PUT", "/control/accounts/a1", {"refuse_duplicates": True})
        _, first = await client.call("POST", UPDATES, POST)
        status, answer = await client.call("POST", UPDATES, POST)
        assert (status, answer["error"]["code"]) == (422, "DUPLICATE_POST")
        assert answer["error"]["duplicate_of"] == first["id"]
        await client.faults({"fault": "duplicate", "ghost": True, "count": 1})
        _, answer = await client.call("POST", UPDATES, POST | {"text": "new"})
        ghost = answer["error"]["duplicate_of"]
        assert (await client.call("GET", f"/v1/posts/{ghost}"))[0] == 404
        assert len(entries(sandbox, "effect")) == 1

    async def _listed(self, client: Client, query: str = "") -> list[Any]:
        status, answer = await client.call("GET", UPDATES + query)
        assert status == 200, answer
        found: list[Any] = answer["updates"]
        return found


class TestMessages:
    async def test_nothing_can_be_read_back(self, client: Client, sandbox: Sandbox) -> None:
        for _ in range(2):
            assert (await client.call("POST", MESSAGES, POST, {"X-Reference": "job-1"}))[0] == 201
        assert [effect["surface"] for effect in entries(sandbox, "effect")] == ["messages", "messages"]
        assert (await client.call("GET", MESSAGES))[0] == 405
        assert await client.look_up("job-1") == []
        assert (await client.call("GET", UPDATES))[1]["updates"] == []


class TestQuotas:
    async def test_each_level_is_counted_and_shown(self, client: Client, clock: FrozenClock) -> None:
        quotas = [
            {"level": "application", "limit": 3, "seconds": 60},
            {"level": "account", "limit": 2, "seconds": 30},
            {"level": "channel", "limit": 1, "seconds": 10},
        ]
        assert (await client.call("PUT", "/control/quotas", quotas))[0] == 200
        answer = await self._post(client, "k1")
        assert answer.status == 201
        assert [answer.headers[f"x-quota-{level}"] for level in ("application", "account", "channel")] == [
            "2;60",
            "1;30",
            "0;10",
        ]
        answer = await self._post(client, "k2")
        assert (answer.status, answer.headers["retry-after"], answer.headers["x-quota-channel"]) == (429, "10", "0;10")
        clock.advance(timedelta(seconds=10))
        assert (await self._post(client, "k2")).status == 201
        clock.advance(timedelta(seconds=10))
        answer = await self._post(client, "k3")
        assert (answer.status, answer.headers["retry-after"]) == (429, "10")
        assert (await self._post(client, "k3", account="a2")).status == 201
        assert (await self._post(client, "k4", account="a3")).headers["retry-after"] == "40"

    async def test_a_flood_holds_one_account_up(self, client: Client, sandbox: Sandbox, clock: FrozenClock) -> None:
        await client.faults({"fault": "flood", "seconds": 30, "account": "a1", "count": 1})
        status, answer = await client.post()
        assert (status, answer["error"]["code"], answer["error"]["seconds"]) == (420, "FLOOD_WAIT", 30)
        clock.advance(timedelta(seconds=20))
        assert (await client.post())[1]["error"]["seconds"] == 10
        assert (await client.post(account="a2"))[0] == 201
        clock.advance(timedelta(seconds=10))
        assert (await client.post())[0] == 201
        assert len(entries(sandbox, "effect")) == 2

    @pytest.mark.parametrize("quotas", [{}, [{}], [{"level": "world", "limit": 1, "seconds": 1}]])
    async def test_a_bad_quota_is_refused(self, client: Client, quotas: object) -> None:
        assert (await client.call("PUT", "/control/quotas", quotas))[0] == 422

    async def _post(self, client: Client, key: str, account: str = "a1") -> Any:
        headers = {"Content-Type": "application/json", "Authorization": "Bearer sandbox-x", "Idempotency-Key": key}
        body = b'{"channel": "facebook", "text": "hello"}'
        return await http_call("POST", f"{client.url}/v1/accounts/{account}/posts", body=body, headers=headers)


class TestTokens:
    async def test_an_access_token_expires_and_is_refreshed(
        self, client: Client, sandbox: Sandbox, clock: FrozenClock
    ) -> None:
        pair = await self._issue(client, rotating=False)
        assert await self._read(client, pair) == 200
        clock.advance(timedelta(seconds=60))
        assert await self._read(client, pair) == 401
        for _ in range(2):
            status, new = await self._refresh(client, pair["refresh_token"])
            assert (status, new["refresh_token"]) == (200, pair["refresh_token"])
            assert await self._read(client, new) == 200
        assert [each["event"] for each in entries(sandbox, "token")] == ["issued", "refreshed", "refreshed"]

    async def test_a_rotated_token_used_again_revokes_its_family(
        self, client: Client, sandbox: Sandbox, clock: FrozenClock
    ) -> None:
        pair = await self._issue(client, rotating=True)
        _, second = await self._refresh(client, pair["refresh_token"])
        assert await self._read(client, second) == 200
        status, answer = await self._refresh(client, pair["refresh_token"])
        assert (status, answer["error"]["code"]) == (400, "INVALID_GRANT")
        assert await self._read(client, second) == 401
        assert (await self._refresh(client, second["refresh_token"]))[0] == 400
        await sandbox.stop()
        async with Sandbox(sandbox.path, clock) as again:
            assert await self._read(Client(again.url), second) == 401
        assert [each["event"] for each in entries(sandbox, "token")] == ["issued", "refreshed", "revoked"]

    async def _issue(self, client: Client, *, rotating: bool) -> Any:
        status, pair = await client.call("POST", "/control/accounts/a1/tokens", {"seconds": 60, "rotating": rotating})
        assert status == 200
        return pair

    async def _refresh(self, client: Client, token: str) -> tuple[int, Any]:
        return await client.call("POST", "/v1/token", f"grant_type=refresh_token&refresh_token={token}".encode())

    async def _read(self, client: Client, pair: Any) -> int:
        token = {"Authorization": f"Bearer {pair['access_token']}"}
        return (await client.call("GET", "/v1/accounts/a1", headers=token))[0]
