"""The sandbox provider's contract, as libs/devstack/README.md states it; its faults are in a file of their own."""

import socket
from collections.abc import Mapping

import pytest

from devstack.sandbox.checks import LONGEST_TEXT
from devstack.sandbox.provider import Sandbox
from tests.contract.devstack.sandbox_calls import POST, Client, entries


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
        assert len(entries(sandbox, "effect")) == 1

    async def test_the_same_key_of_another_account_is_another_post(self, client: Client, sandbox: Sandbox) -> None:
        await client.post(account="a1")
        assert (await client.post(account="a2"))[0] == 201
        assert len(entries(sandbox, "effect")) == 2

    async def test_the_same_key_with_other_content_is_refused(self, client: Client, sandbox: Sandbox) -> None:
        await client.post()
        for change in ({"text": "Good evening"}, {"channel": "x"}, {"destination": "page-2"}):
            status, answer = await client.post(**change)
            assert (status, answer["error"]["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
        assert len(entries(sandbox, "effect")) == 1

    async def test_without_a_key_every_request_is_a_post(self, client: Client, sandbox: Sandbox) -> None:
        assert [(await client.post(key=""))[0] for _ in range(2)] == [201, 201]
        assert len(entries(sandbox, "effect")) == 2

    @pytest.mark.parametrize("mode", ["blind", "lookup"])
    async def test_outside_keyed_mode_the_same_key_makes_a_second_effect(
        self, client: Client, sandbox: Sandbox, mode: str
    ) -> None:
        assert await client.call("PUT", "/control/accounts/a1", {"mode": mode}) == (200, {"id": "a1", "mode": mode})
        ids = [(await client.post())[1]["id"] for _ in range(2)]
        assert [effect["id"] for effect in entries(sandbox, "effect")] == ids
        assert ids[0] != ids[1]

    async def test_an_account_name_with_special_characters_is_taken_as_it_is(
        self, client: Client, sandbox: Sandbox
    ) -> None:
        await client.post(account="b%2Fc%20d")
        assert entries(sandbox, "effect")[0]["account"] == "b/c d"

    async def test_text_outside_ascii_comes_back_as_it_was(self, client: Client) -> None:
        _, post = await client.post(text="Grüße \U0001f44b\n\u2028")
        _, shown = await client.call("GET", post["url"].removeprefix(client.url))
        assert shown["text"] == "Grüße \U0001f44b\n\u2028"

    async def test_a_comment_names_the_post_that_it_follows(self, client: Client, sandbox: Sandbox) -> None:
        _, post = await client.post()
        status, comment = await client.post("k2", text="More", follows=post["id"])
        assert status == 201
        assert entries(sandbox, "effect")[1]["follows"] == post["id"]
        _, shown = await client.call("GET", comment["url"].removeprefix(client.url))
        assert shown["follows"] == post["id"]

    async def test_nobody_follows_the_post_of_another_account(self, client: Client) -> None:
        _, post = await client.post()
        status, answer = await client.post("k2", "a2", follows=post["id"])
        assert (status, answer["error"]["code"]) == (404, "PARENT_NOT_FOUND")


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
        assert entries(sandbox, "effect") == []


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
            (403, "PEER_BLOCKED", POST | {"destination": "blocked-by-her"}, {}, "a1"),
            (413, "BODY_TOO_LARGE", b"x" * 65_537, {}, "a1"),
            (415, "UNSUPPORTED_MEDIA_TYPE", POST, {"Content-Type": "text/plain"}, "a1"),
            (422, "INVALID_FIELD", [], {}, "a1"),
            (422, "INVALID_FIELD", POST | {"text": 7}, {}, "a1"),
            (422, "INVALID_FIELD", POST | {"channel": ""}, {}, "a1"),
            (422, "INVALID_FIELD", POST | {"destination": None}, {}, "a1"),
            (422, "INVALID_FIELD", POST | {"follows": 7}, {}, "a1"),
            (404, "PARENT_NOT_FOUND", POST | {"follows": "sp-7"}, {}, "a1"),
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
        assert entries(sandbox, "effect") == []

    async def test_the_longest_text_is_accepted(self, client: Client) -> None:
        assert (await client.post(text="x" * LONGEST_TEXT))[0] == 201

    async def test_paths_and_methods_that_are_not_served_are_refused(self, client: Client) -> None:
        assert (await client.call("GET", "/v1/elsewhere"))[0] == 404
        assert (await client.call("GET", "/"))[0] == 404
        assert (await client.call("GET", "/v1/posts/sp-1"))[0] == 404
        assert (await client.call("GET", "/v1/posts/else"))[0] == 404
        assert (await client.call("DELETE", "/v1/accounts/a1"))[0] == 405


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
        outside = Client(f"http://{address}:{sandbox.port}")
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
