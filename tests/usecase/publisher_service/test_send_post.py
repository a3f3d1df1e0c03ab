"""A claimed post whose request cannot be made: the reason is recorded, and nobody is disconnected."""

import base64
from pathlib import Path

import pytest
from sqlalchemy import text

from publisher_service.adapters.vault import key_id_of
from servicekit.run.settings import Secret
from testkit.eventually import eventually
from tests.usecase.publisher_service.rig import Rig, Start

OLD = Secret(base64.b64encode(bytes(range(32))).decode())
NEW = Secret(base64.b64encode(bytes(32)).decode())


async def test_a_post_waits_for_a_process_that_can_open_its_credentials(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys"
    file.write_text(f"new {NEW.reveal()}\n")
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
    async with start(credentials_key=Secret(""), credentials_keys_file=str(file)) as rig:
        await rig.go("d1")
        job = await rig.in_state("WAITING", "d1")
        assert (job.state_reason, job.attempts) == ("CREDENTIALS_UNREADABLE", 0)
        (account,) = await rig.rows("select state, version from social_account")
        assert (account.state, account.version) == ("CONNECTED", 1)
        assert [record for record in caplog.records if "wait until this process has the key" in record.getMessage()]
    file.write_text(f"new {NEW.reveal()}\nold {OLD.reveal()}\n")
    async with start(credentials_key=Secret(""), credentials_keys_file=str(file)) as rig:
        async with rig.database.transaction() as tx:
            # The wait would be half a minute.
            await tx.connection.execute(text("update post_job set next_action_time = now() - interval '3 seconds'"))
        await rig.in_state("PUBLISHED", "d1", within=20)

        async def resealed() -> bool:
            (row,) = await rig.rows("select credentials from social_account")
            return key_id_of(row.credentials) == "new"

        await eventually(resealed)


async def test_unreadable_content_fails_its_post_and_others_go_out(start: Start) -> None:
    async with start() as rig:
        for page in ("page", "other"):
            await rig.connect(page)
        await rig.save_draft("odd")
        await rig.save_draft("even", "other")
        await eventually(lambda: announced(rig, 2))
        await rig.write("update content set content = '\\x0a' where draft_id = 'odd'")
        await rig.go("odd")
        job = await rig.in_state("FAILED", "odd")
        assert job.error_reason == "CONTENT_UNREADABLE"
        await rig.go("even", account="other")
        await rig.in_state("PUBLISHED", "even", "other")
        assert [effect["text"] for effect in rig.sandbox.effects()] == ["hello"]


async def announced(rig: Rig, drafts: int) -> bool:
    return len(await rig.rows("select 1 from content")) == drafts
