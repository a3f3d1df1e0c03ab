"""Credentials are sealed again with the newest key, so that an old key can be removed."""

import base64

import pytest
from sqlalchemy import text

from publisher_service.adapters.vault import Vault, key_id_of
from publisher_service.application.reseal_credentials import ResealCredentials
from servicekit.run.settings import Secret
from tests.usecase.publisher_service.rig import Start

OLD = Secret(base64.b64encode(bytes(range(32))).decode())
NEW = Secret(base64.b64encode(bytes(32)).decode())


async def test_resealing_walks_all_pages_and_skips_what_no_key_opens(start: Start) -> None:
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
async def test_resealing_reports_a_key_that_was_replaced_under_its_name(
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
