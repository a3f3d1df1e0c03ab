"""Faults of the sandbox provider, as libs/devstack/README.md states them."""

import json
from collections.abc import Mapping

import pytest

from devstack.http_call import http_call
from devstack.sandbox.provider import Sandbox
from testkit.eventually import eventually
from tests.contract.devstack.sandbox_calls import POST, Client, entries


class TestFaults:
    @pytest.mark.parametrize("fault", ["reset_before_effect", "hang_without_effect"])
    async def test_a_lost_request_has_no_effect(self, client: Client, sandbox: Sandbox, fault: str) -> None:
        await client.faults({"fault": fault, "count": 1})
        await client.lost_post()
        assert entries(sandbox, "effect") == []
        assert (await client.post())[0] == 201

    @pytest.mark.parametrize("fault", ["effect_then_reset", "effect_then_hang"])
    async def test_a_lost_answer_hides_an_effect_that_the_next_request_finds(
        self, client: Client, sandbox: Sandbox, fault: str
    ) -> None:
        await client.faults({"fault": fault, "count": 1})
        await client.lost_post()
        (effect,) = entries(sandbox, "effect")
        assert (await client.post())[1]["id"] == effect["id"]
        assert len(entries(sandbox, "effect")) == 1

    async def test_the_client_sees_a_reset_as_a_reset(self, client: Client) -> None:
        await client.faults({"fault": "reset_before_effect"})
        with pytest.raises(ConnectionResetError, match="reset by peer"):
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
        assert len(entries(sandbox, "effect")) == int(effect)

    async def test_a_rate_limit_says_when_to_retry(self, client: Client) -> None:
        await client.faults({"fault": "status", "status": 429, "retry_after": 7})
        answer = await http_call(
            "POST",
            f"{client.url}/v1/accounts/a1/posts",
            body=json.dumps(POST).encode(),
            headers={"Authorization": "Bearer sandbox-x", "Content-Type": "application/json"},
        )
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")

    @pytest.mark.parametrize("effect", [False, True])
    async def test_garbage_is_a_success_that_cannot_be_parsed(
        self, client: Client, sandbox: Sandbox, effect: bool
    ) -> None:
        await client.faults({"fault": "garbage", "effect": effect, "body": "<html>"})
        assert await client.post() == (200, "<html>")
        assert len(entries(sandbox, "effect")) == int(effect)

    async def test_a_slow_post_takes_effect_after_its_client_has_gone(self, client: Client, sandbox: Sandbox) -> None:
        await client.faults({"fault": "slow", "seconds": 1, "count": 1})
        await client.lost_post()
        assert entries(sandbox, "effect") == []
        await eventually(lambda: len(entries(sandbox, "effect")) == 1)

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
        await eventually(lambda: len(entries(sandbox, "effect")) == 1)
        assert len(await client.look_up()) == 1

    async def test_a_late_effect_may_follow_an_error(self, client: Client, sandbox: Sandbox) -> None:
        await client.faults({"fault": "late_effect", "seconds": 0.05, "count": 1, "answer": "status", "status": 500})
        assert (await client.post())[0] == 500
        await eventually(lambda: len(entries(sandbox, "effect")) == 1)

    async def test_a_second_request_during_the_first_is_refused(self, client: Client, sandbox: Sandbox) -> None:
        await client.faults({"fault": "late_effect", "seconds": 0.3, "count": 1, "answer": "status"})
        await client.post()
        status, answer = await client.post()
        assert (status, answer["error"]["code"]) == (409, "IN_PROGRESS")
        await eventually(lambda: len(entries(sandbox, "effect")) == 1)
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
            {"fault": "reset_before_effect", "operation": operation, "count": 1},
        )
        assert (await client.post())[0] == 201
        assert (await client.call("GET", path))[0] == 503
        assert (await client.call("GET", path))[1] == "<html>It works!</html>"
        assert (await client.call("GET", path))[0] == 200
        with pytest.raises(ConnectionResetError):
            await client.call("GET", path)
        outcomes = [entry["outcome"] for entry in entries(sandbox, "request") if entry["operation"] == operation]
        assert outcomes == ["refused", "garbage", "answered", "reset"]

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
