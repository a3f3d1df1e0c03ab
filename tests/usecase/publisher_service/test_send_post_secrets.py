"""A token goes to its provider and nowhere else."""

import logging

import pytest

from tests.usecase.publisher_service.rig import Start

CANARY = "sandbox-canary-c0ffee"


async def test_no_token_appears_in_a_log_a_row_or_an_event(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    async with start() as rig:
        # At DEBUG the broker's client logs all that it sends; no token is part of that.
        with caplog.at_level(logging.DEBUG):
            await rig.connect(token=CANARY)
            await rig.sandbox.faults(
                {"fault": "effect_then_reset", "text": "lost"},
                {"fault": "reset_before_effect", "operation": "lookup", "count": 2},
                {"fault": "status", "status": 401, "text": "refused"},
                {"fault": "garbage", "body": f'{{"error": {{"message": "{CANARY}"}}}}', "text": "echoed", "count": 1},
            )
            for draft, state in (
                ("well", "PUBLISHED"),
                ("lost", "PUBLISHED"),
                ("echoed", "PUBLISHED"),
                ("refused", "BLOCKED"),
            ):
                await rig.save_draft(draft, said=draft)
                await rig.go(draft)
                await rig.in_state(state, draft)
        assert CANARY not in caplog.text
        assert not [record for record in caplog.records if CANARY in repr(record.__dict__)]
        tables = await rig.rows(
            "select table_name as name from information_schema.tables where table_schema = 'public'"
        )
        assert {"social_account", "outbox", "attempt", "inbox"} <= {table.name for table in tables}
        for table in tables:
            for row in await rig.rows(f"select t::text as shown from {table.name} t"):  # noqa: S608
                assert CANARY not in row.shown, table.name
                assert CANARY.encode().hex() not in row.shown, table.name
