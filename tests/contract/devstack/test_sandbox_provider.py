"""The sandbox provider's contract, as libs/devstack/README.md states it."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from devstack.errors import FolderInUse
from devstack.sandbox.checks import LONGEST_TEXT
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


def _entries(sandbox: Sandbox, kind: str) -> list[Any]:
    entries = [json.loads(line) for line in sandbox.path.read_text().splitlines()]
    return [entry for entry in entries if entry["kind"] == kind]


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        yield Client(session, sandbox.url)


class TestPosting:
    async def test_a_post_is_created_with_an_id_and_a_url_that_shows_it(self, client: Client) -> None:
        status, post = await client.post()
        assert status == 201
        assert set(post) == {"id", "url"}
        status, shown = await client.call("GET", post["url"].removeprefix(client.url))
        assert status == 200
        assert shown | POST == shown
        assert shown["account"] == "a1"

    async def test_the_same_key_returns_the_first_post_without_a_second_effect(
        self, client: Client, sandbox: Sandbox
    ) -> None:
        _, first = await client.post()
        assert await client.post() == (200, first)
        assert len(_entries(sandbox, "effect")) == 1

    async def test_the_same_key_of_another_account_is_another_post(self, client: Client, sandbox: Sandbox) -> None:
        await client.post(account="a1")
        assert (await client.post(account="a2"))[0] == 201
        assert len(_entries(sandbox, "effect")) == 2

    async def test_the_same_key_with_other_content_is_refused(self, client: Client, sandbox: Sandbox) -> None:
        await client.post()
        for change in ({"text": "Good evening"}, {"channel": "x"}, {"destination": "page-2"}):
            status, answer = await client.post(**change)
            assert (status, answer["error"]["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
        assert len(_entries(sandbox, "effect")) == 1

    async def test_without_a_key_every_request_is_a_post(self, client: Client, sandbox: Sandbox) -> None:
        assert [(await client.post(key=""))[0] for _ in range(2)] == [201, 201]
        assert len(_entries(sandbox, "effect")) == 2

    @pytest.mark.parametrize("mode", ["blind", "lookup"])
    async def test_outside_keyed_mode_the_same_key_makes_a_second_effect(
        self, client: Client, sandbox: Sandbox, mode: str
    ) -> None:
        assert await client.call("PUT", "/control/accounts/a1", {"mode": mode}) == (200, {"id": "a1", "mode": mode})
        ids = [(await client.post())[1]["id"] for _ in range(2)]
        assert [effect["id"] for effect in _entries(sandbox, "effect")] == ids
        assert ids[0] != ids[1]

    async def test_an_account_name_with_special_characters_is_taken_as_it_is(
        self, client: Client, sandbox: Sandbox
    ) -> None:
        await client.post(account="b%2Fc%20d")
        assert _entries(sandbox, "effect")[0]["account"] == "b/c d"

    async def test_text_outside_ascii_comes_back_as_it_was(self, client: Client) -> None:
        _, post = await client.post(text="Grüße \U0001f44b\n\u2028")
        _, shown = await client.call("GET", post["url"].removeprefix(client.url))
        assert shown["text"] == "Grüße \U0001f44b\n\u2028"


class TestLookup:
    async def test_a_post_is_found_by_its_key(self, client: Client) -> None:
        _, post = await client.post()
        (found,) = await client.look_up()
        assert (found["id"], found["url"], found["text"]) == (post["id"], post["url"], POST["text"])

    async def test_nothing_is_found_for_an_unknown_key(self, client: Client) -> None:
        await client.post()
        assert await client.look_up(key="other") == []
        assert await client.look_up(account="other") == []

    async def test_a_lookup_finds_every_duplicate(self, client: Client) -> None:
        await client.call("PUT", "/control/accounts/a1", {"mode": "lookup"})
        await client.post()
        await client.post()
        assert len(await client.look_up()) == 2

    async def test_a_blind_account_cannot_be_looked_up(self, client: Client) -> None:
        await client.call("PUT", "/control/accounts/a1", {"mode": "blind"})
        status, answer = await client.call("GET", "/v1/posts?account=a1&idempotency_key=k1")
        assert (status, answer["error"]["code"]) == (404, "LOOKUP_UNAVAILABLE")

    async def test_both_parameters_are_needed(self, client: Client) -> None:
        for query in ("", "?account=a1", "?idempotency_key=k1"):
            status, answer = await client.call("GET", f"/v1/posts{query}")
            assert (status, answer["error"]["code"]) == (422, "MISSING_PARAMETER")


class TestAccounts:
    async def test_an_account_shows_its_facts(self, client: Client) -> None:
        status, facts = await client.call("GET", "/v1/accounts/a1")
        assert status == 200
        assert facts == {"id": "a1", "name": "Sandbox account a1", "mode": "keyed", "longest_text": LONGEST_TEXT}

    @pytest.mark.parametrize("token", ["", "Bearer other", "Bearer sandbox-revoked", "Basic sandbox-x", "sandbox-x"])
    async def test_a_bad_token_is_refused_everywhere(self, client: Client, token: str, sandbox: Sandbox) -> None:
        calls = {
            "POST": ("/v1/accounts/a1/posts", POST),
            "GET": ("/v1/accounts/a1", None),
            "get": ("/v1/posts?account=a1&idempotency_key=k", None),
        }
        for method, (path, body) in calls.items():
            status, answer = await client.call(method.upper(), path, body, {"Authorization": token})
            assert (status, answer["error"]["code"]) == (401, "UNAUTHENTICATED")
        assert _entries(sandbox, "effect") == []


class TestRefusals:
    @pytest.mark.parametrize(
        ("status", "code", "body", "headers", "account"),
        [
            (400, "EMPTY_TEXT", POST | {"text": ""}, {}, "a1"),
            (400, "EMPTY_TEXT", POST | {"text": " \n"}, {}, "a1"),
            (400, "TEXT_TOO_LONG", POST | {"text": "x" * (LONGEST_TEXT + 1)}, {}, "a1"),
            (400, "MALFORMED", b"{", {}, "a1"),
            (400, "MALFORMED", b"\xff\xfe{", {}, "a1"),
            (403, "FORBIDDEN", POST, {"Authorization": "Bearer sandbox-readonly"}, "a1"),
            (404, "ACCOUNT_NOT_FOUND", POST, {}, "missing-account"),
            (404, "DESTINATION_NOT_FOUND", POST | {"destination": "missing-page"}, {}, "a1"),
            (413, "BODY_TOO_LARGE", b"x" * 65_537, {}, "a1"),
            (415, "UNSUPPORTED_MEDIA_TYPE", POST, {"Content-Type": "text/plain"}, "a1"),
            (422, "INVALID_FIELD", [], {}, "a1"),
            (422, "INVALID_FIELD", POST | {"text": 7}, {}, "a1"),
            (422, "INVALID_FIELD", POST | {"channel": ""}, {}, "a1"),
            (422, "INVALID_FIELD", POST | {"destination": None}, {}, "a1"),
        ],
    )
    async def test_bad_requests_say_what_is_wrong_and_have_no_effect(
        self,
        client: Client,
        sandbox: Sandbox,
        status: int,
        code: str,
        body: object,
        headers: Mapping[str, str],
        account: str,
    ) -> None:
        found, answer = await client.call("POST", f"/v1/accounts/{account}/posts", body, headers)
        assert (found, answer["error"]["code"]) == (status, code)
        assert answer["error"]["message"]
        assert _entries(sandbox, "effect") == []

    async def test_the_longest_text_is_accepted(self, client: Client) -> None:
        assert (await client.post(text="x" * LONGEST_TEXT))[0] == 201

    async def test_paths_and_methods_that_are_not_served_are_refused(self, client: Client) -> None:
        assert (await client.call("GET", "/v1/elsewhere"))[0] == 404
        assert (await client.call("GET", "/"))[0] == 404
        assert (await client.call("GET", "/v1/posts/sp-1"))[0] == 404
        assert (await client.call("GET", "/v1/posts/else"))[0] == 404
        assert (await client.call("DELETE", "/v1/accounts/a1"))[0] == 405


class TestFaults:
    @pytest.mark.parametrize("fault", ["reset_before_effect", "hang_without_effect"])
    async def test_a_lost_request_has_no_effect(self, client: Client, sandbox: Sandbox, fault: str) -> None:
        await client.faults({"fault": fault, "count": 1})
        await client.lost_post()
        assert _entries(sandbox, "effect") == []
        assert (await client.post())[0] == 201

    @pytest.mark.parametrize("fault", ["effect_then_reset", "effect_then_hang"])
    async def test_a_lost_answer_hides_an_effect_that_the_next_request_finds(
        self, client: Client, sandbox: Sandbox, fault: str
    ) -> None:
        await client.faults({"fault": fault, "count": 1})
        await client.lost_post()
        (effect,) = _entries(sandbox, "effect")
        assert (await client.post())[1]["id"] == effect["id"]
        assert len(_entries(sandbox, "effect")) == 1

    async def test_the_client_sees_a_reset_as_a_reset(self, client: Client) -> None:
        await client.faults({"fault": "reset_before_effect"})
        with pytest.raises(aiohttp.ClientOSError, match="reset by peer"):
            await client.post()

    @pytest.mark.parametrize("status", [409, 429, 500, 503])
    @pytest.mark.parametrize("effect", [False, True])
    async def test_a_status_with_and_without_effect(
        self, client: Client, sandbox: Sandbox, status: int, effect: bool
    ) -> None:
        await client.faults({"fault": "status", "status": status, "effect": effect})
        found, answer = await client.post()
        assert found == status
        assert set(answer["error"]) == {"code", "message"}
        assert len(_entries(sandbox, "effect")) == int(effect)

    async def test_a_rate_limit_says_when_to_retry(self, client: Client) -> None:
        await client.faults({"fault": "status", "status": 429, "retry_after": 7})
        async with aiohttp.request(
            "POST",
            f"{client.url}/v1/accounts/a1/posts",
            json=POST,
            headers={"Authorization": "Bearer sandbox-x"},
        ) as response:
            assert (response.status, response.headers["Retry-After"]) == (429, "7")

    @pytest.mark.parametrize("effect", [False, True])
    async def test_garbage_is_a_success_that_cannot_be_parsed(
        self, client: Client, sandbox: Sandbox, effect: bool
    ) -> None:
        await client.faults({"fault": "garbage", "effect": effect, "body": "<html>"})
        assert await client.post() == (200, "<html>")
        assert len(_entries(sandbox, "effect")) == int(effect)

    async def test_a_slow_post_takes_effect_after_its_client_has_gone(self, client: Client, sandbox: Sandbox) -> None:
        await client.faults({"fault": "slow", "seconds": 1, "count": 1})
        await client.lost_post()
        assert _entries(sandbox, "effect") == []
        await eventually(lambda: len(_entries(sandbox, "effect")) == 1)

    async def test_a_slow_post_is_answered_in_the_end(self, client: Client) -> None:
        await client.faults({"fault": "slow", "seconds": 0.05})
        assert (await client.post())[0] == 201
        assert (await client.post())[0] == 200

    @pytest.mark.parametrize("answer", [{"answer": "hang"}, {"answer": "reset"}])
    async def test_a_late_effect_comes_after_the_request_was_lost(
        self, client: Client, sandbox: Sandbox, answer: Mapping[str, object]
    ) -> None:
        await client.faults({"fault": "late_effect", "seconds": 1, "count": 1, **answer})
        await client.lost_post()
        assert await client.look_up() == []
        await eventually(lambda: len(_entries(sandbox, "effect")) == 1)
        assert len(await client.look_up()) == 1

    async def test_a_late_effect_may_follow_an_error(self, client: Client, sandbox: Sandbox) -> None:
        await client.faults({"fault": "late_effect", "seconds": 0.05, "count": 1, "answer": "status", "status": 500})
        assert (await client.post())[0] == 500
        await eventually(lambda: len(_entries(sandbox, "effect")) == 1)

    async def test_a_second_request_during_the_first_is_refused(self, client: Client, sandbox: Sandbox) -> None:
        await client.faults({"fault": "late_effect", "seconds": 0.3, "count": 1, "answer": "status"})
        await client.post()
        status, answer = await client.post()
        assert (status, answer["error"]["code"]) == (409, "IN_PROGRESS")
        await eventually(lambda: len(_entries(sandbox, "effect")) == 1)
        assert (await client.post())[0] == 200

    async def test_a_rule_strikes_where_account_and_text_fit_and_count_times(self, client: Client) -> None:
        await client.faults({"fault": "status", "account": "a1", "text": "BREAK", "count": 2})
        assert (await client.post(key="1"))[0] == 201
        assert (await client.post(key="2", account="a2", text="BREAK me"))[0] == 201
        assert [(await client.post(key="3", text="BREAK me"))[0] for _ in range(3)] == [503, 503, 201]

    async def test_the_first_rule_that_fits_decides(self, client: Client) -> None:
        await client.faults({"fault": "status", "status": 500, "count": 1}, {"fault": "status", "status": 503})
        assert [(await client.post())[0] for _ in range(2)] == [500, 503]

    async def test_rules_are_shown_with_what_is_left_and_deleted(self, client: Client) -> None:
        await client.faults({"fault": "status", "count": 2})
        await client.post()
        _, (rule,) = await client.call("GET", "/control/faults")
        assert (rule["fault"], rule["count"]) == ("status", 1)
        assert await client.call("DELETE", "/control/faults") == (200, [])
        assert (await client.post())[0] == 201

    @pytest.mark.parametrize("operation", ["lookup", "account"])
    async def test_reads_fail_too(self, client: Client, sandbox: Sandbox, operation: str) -> None:
        path = {"lookup": "/v1/posts?account=a1&idempotency_key=k1", "account": "/v1/accounts/a1"}[operation]
        await client.faults(
            {"fault": "status", "status": 503, "operation": operation, "count": 1},
            {"fault": "garbage", "operation": operation, "count": 1},
            {"fault": "slow", "seconds": 0.01, "operation": operation, "count": 1},
            # Twice: aiohttp repeats a GET whose connection was reset.
            {"fault": "reset_before_effect", "operation": operation, "count": 2},
        )
        assert (await client.post())[0] == 201
        assert (await client.call("GET", path))[0] == 503
        assert (await client.call("GET", path))[1] == "<html>It works!</html>"
        assert (await client.call("GET", path))[0] == 200
        with pytest.raises(aiohttp.ClientOSError):
            await client.call("GET", path)
        outcomes = [entry["outcome"] for entry in _entries(sandbox, "request") if entry["operation"] == operation]
        assert outcomes == ["refused", "garbage", "answered", "reset", "reset"]

    @pytest.mark.parametrize(
        ("rules", "hint"),
        [
            ({}, "JSON list"),
            (["slow"], "rule 0 is not an object"),
            ([{}], "names no fault"),
            ([{"fault": "earthquake"}], "one of reset_before_effect"),
            ([{"fault": "slow", "second": 1}], "unknown field 'second'"),
            ([{"fault": "slow", "seconds": "1"}], "of type float"),
            ([{"fault": "slow", "seconds": -1}], "not be negative"),
            ([{"fault": "slow", "count": True}], "of type int"),
            ([{"fault": "status", "status": 200}], "400-599"),
            ([{"fault": "late_effect", "operation": "lookup"}], "makes no sense"),
        ],
    )
    async def test_a_bad_rule_is_refused_with_a_hint_and_changes_nothing(
        self, client: Client, rules: object, hint: str
    ) -> None:
        await client.faults({"fault": "status", "status": 418})
        status, answer = await client.call("PUT", "/control/faults", rules)
        assert status == 422
        assert hint in answer["error"]["message"]
        assert (await client.post())[0] == 418


class TestLedger:
    async def test_effect_and_outcome_are_written_before_the_answer(self, client: Client, sandbox: Sandbox) -> None:
        _, post = await client.post()
        effect, request = await client.ledger()
        assert effect.pop("time") <= request.pop("time")
        assert effect == {
            "seq": 1,
            "kind": "effect",
            "id": post["id"],
            "account": "a1",
            "idempotency_key": "k1",
            **POST,
        }
        assert request == {
            "seq": 2,
            "kind": "request",
            "operation": "post",
            "account": "a1",
            "idempotency_key": "k1",
            "outcome": "created",
            "status": 201,
            "id": post["id"],
            "fault": None,
        }
        assert sandbox.path.read_text().count("\n") == 2

    async def test_the_ledger_has_every_outcome(self, client: Client, sandbox: Sandbox) -> None:
        await client.post()
        await client.post()
        await client.post(text="")
        await client.faults({"fault": "effect_then_reset", "count": 1}, {"fault": "hang_without_effect", "count": 1})
        await client.lost_post("k2")
        await client.lost_post("k3")
        outcomes = [(entry["outcome"], entry["status"], entry["fault"]) for entry in _entries(sandbox, "request")]
        assert outcomes == [
            ("created", 201, None),
            ("replayed", 200, None),
            ("refused", 400, None),
            ("reset", 0, "effect_then_reset"),
            ("hung", 0, "hang_without_effect"),
        ]

    async def test_the_ledger_is_read_in_pages_from_any_line(self, client: Client) -> None:
        for number in range(3):
            await client.post(key=str(number))
        assert [entry["seq"] for entry in await client.ledger(since=4)] == [5, 6]
        assert await client.ledger(since=99) == []
        _, page = await client.call("GET", "/control/ledger?since=1&limit=2")
        assert [entry["seq"] for entry in page] == [2, 3]
        assert (await client.call("GET", "/control/ledger?since=x"))[0] == 422

    async def test_a_restarted_provider_knows_its_posts(self, client: Client, sandbox: Sandbox) -> None:
        _, first = await client.post()
        port = sandbox.port
        await sandbox.stop()
        await sandbox.start(port=port)
        assert await client.post() == (200, first)
        assert (await client.post(key="k2"))[1]["id"] != first["id"]

    async def test_a_line_that_was_cut_short_is_forgotten(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.jsonl"
        async with Sandbox(path) as sandbox, aiohttp.ClientSession() as session:
            await Client(session, sandbox.url).post()
        whole = path.read_text()
        path.write_text(whole + '{"seq":3,"kind":"eff')
        async with Sandbox(path):
            assert path.read_text() == whole

    async def test_two_providers_never_share_a_ledger(self, sandbox: Sandbox) -> None:
        with pytest.raises(FolderInUse):
            await Sandbox(sandbox.path).start()


class TestControl:
    async def test_another_machine_may_post_but_not_control(self, sandbox: Sandbox) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing, but chooses our address
            except OSError:
                pytest.skip("this machine has no address but loopback")
            address = probe.getsockname()[0]
        await sandbox.stop()
        await sandbox.start("0.0.0.0")  # noqa: S104 - for the length of this test
        async with aiohttp.ClientSession() as session:
            outside = Client(session, f"http://{address}:{sandbox.port}")
            assert (await outside.post())[0] == 201
            for method, path in (("GET", "health"), ("PUT", "faults"), ("DELETE", "faults"), ("GET", "ledger")):
                status, answer = await outside.call(method, f"/control/{path}", [])
                assert (status, answer["error"]["code"]) == (404, "NOT_FOUND")

    async def test_unknown_controls_and_modes_are_refused(self, client: Client) -> None:
        assert (await client.call("GET", "/control/elsewhere"))[0] == 404
        bodies: tuple[object, ...] = ({"mode": "psychic"}, {}, [])
        for body in bodies:
            status, answer = await client.call("PUT", "/control/accounts/a1", body)
            assert (status, answer["error"]["code"]) == (422, "INVALID")


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
        assert len(_entries(sandbox, "effect")) == 200
