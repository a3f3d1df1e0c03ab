"""The ledger of the sandbox provider, as libs/devstack/README.md states it."""

from pathlib import Path

import pytest

from devstack.errors import FolderInUse
from devstack.sandbox.provider import Sandbox
from tests.contract.devstack.sandbox_calls import POST, Client, entries


class TestLedger:
    async def test_effect_and_outcome_are_written_before_the_answer(self, client: Client, sandbox: Sandbox) -> None:
        _, post = await client.post()
        effect, request = await client.ledger()
        assert request.pop("arrival") <= effect.pop("time") <= request.pop("time")
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
        outcomes = [(entry["outcome"], entry["status"], entry["fault"]) for entry in entries(sandbox, "request")]
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
        async with Sandbox(path) as sandbox:
            await Client(sandbox.url).post()
        whole = path.read_text()
        path.write_text(whole + '{"seq":3,"kind":"eff')
        async with Sandbox(path):
            assert path.read_text() == whole

    async def test_two_providers_never_share_a_ledger(self, sandbox: Sandbox) -> None:
        with pytest.raises(FolderInUse):
            await Sandbox(sandbox.path).start()
