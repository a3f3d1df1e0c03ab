"""The keys of credentials: a process that lacks one harms nobody, and an old one can be taken away."""

import base64
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.vault import Vault, key_id_of
from publisher_service.application.reseal_credentials import ResealCredentials
from servicekit.run.settings import Secret
from testkit.eventually import eventually

Start = Callable[..., AbstractAsyncContextManager[Any]]

OLD = Secret(base64.b64encode(bytes(range(32))).decode())
NEW = Secret(base64.b64encode(bytes(32)).decode())


async def test_a_process_without_the_key_disconnects_nobody_and_with_it_the_post_goes_out(
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
            # The wait is half a minute.
            await tx.connection.execute(text("update post_job set next_action_time = now() - interval '3 seconds'"))
        await rig.in_state("PUBLISHED", "d1", within=20)

        async def resealed() -> bool:
            (row,) = await rig.rows("select credentials from social_account")
            return key_id_of(row.credentials) == "new"

        await eventually(resealed)


async def test_a_walk_reseals_every_page_and_leaves_what_no_key_opens(start: Start) -> None:
    async with start(credentials_key=OLD) as rig:
        await rig.connect()
        async with rig.database.transaction() as tx:
            await tx.connection.execute(
                text("""
                    insert into social_account (organization_id, id, provider, external_account_id, display_name,
                        channels, state, credentials, version, create_time, update_time)
                    select 'other', 'a' || n, 'sandbox', 'e', '', '{}', 'CONNECTED', '\\x01', 1, now(), now()
                    from generate_series(1, 150) n
                """)
            )
        walk = ResealCredentials(rig.database, Vault([("new", NEW), ("default", OLD)]))
        assert await walk.step()
        assert not await walk.step()
        rows = await rig.rows("select id, credentials from social_account")
        assert {row.id for row in rows if key_id_of(row.credentials) == "new"} == {"page"}
        assert len([row for row in rows if row.credentials == b"\x01"]) == 150


@pytest.mark.parametrize(
    ("ring", "opens"),
    [([("default", NEW)], False), ([("default", NEW), ("old", OLD)], True)],
    ids=["replaced", "replaced and kept"],
)
async def test_a_key_that_was_replaced_under_its_name_is_noticed_by_the_walk(
    start: Start, caplog: pytest.LogCaptureFixture, ring: list[tuple[str, Secret]], opens: bool
) -> None:
    async with start(credentials_key=OLD) as rig:
        await rig.connect()
        assert not await ResealCredentials(rig.database, Vault(ring)).step()
        alarms = [record for record in caplog.records if "1 accounts open with no key" in record.getMessage()]
        assert len(alarms) == (not opens)
        (row,) = await rig.rows("select credentials from social_account")
        sealed_with = NEW if opens else OLD
        Vault([("any", sealed_with)]).open(row.credentials, organization_id="acme", account_id="page")
