"""An account is stored once in an organization, with what is known of its credentials."""

import asyncio
from datetime import timedelta

import pytest

from publisher_service.adapters.providers.sandbox import SandboxAdapter
from servicekit.faults import Fault, InvalidField
from tests.usecase.publisher_service.disconnecting import disconnect
from tests.usecase.publisher_service.renewing import HOUR, Renewing


class Mailing(SandboxAdapter):
    """A provider whose accounts have a setting."""

    def check_settings(self, settings: dict[str, str]) -> dict[str, str]:
        if "host" not in settings:
            raise InvalidField("settings.host", "is required")
        return {name: value.strip() for name, value in settings.items()}


async def reason_of(awaited: object) -> str:
    with pytest.raises(Fault) as refused:
        await awaited  # type: ignore[misc]
    return refused.value.reason


async def test_one_account_of_a_provider_has_one_id_in_an_organization(office: Renewing) -> None:
    await office.connect("page", external="p1")
    with pytest.raises(Fault) as refused:
        await office.connect("copy", external="p1")
    assert refused.value.reason == "ACCOUNT_CONNECTED_ELSEWHERE"
    assert refused.value.metadata == {"social_account_id": "page"}
    assert await office.replica.rows("select 1 from social_account where id = 'copy'") == []
    await office.connect("page", external="p1")
    await disconnect(office.replica, "page")
    await office.connect("copy", external="p1")
    assert await reason_of(office.connect("page", external="p1")) == "ACCOUNT_CONNECTED_ELSEWHERE"


async def test_other_organizations_are_not_looked_at(office: Renewing) -> None:
    await office.connect("page", external="p1", organization="other")
    await office.connect("page", external="p1")


async def test_of_concurrent_first_connections_one_gets_the_account(office: Renewing, branch: Renewing) -> None:
    async def connect(process: Renewing, name: str) -> bool:
        try:
            await process.connect(name, external="p1")
        except Fault:
            return False
        return True

    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(connect((office, branch)[n % 2], f"a{n}")) for n in range(8)]
    assert sum(each.result() for each in calls) == 1


async def test_credentials_that_have_expired_are_refused(office: Renewing) -> None:
    with pytest.raises(InvalidField) as refused:
        await office.connect("page", expires=-HOUR)
    assert refused.value.metadata == {"field": "credentials.expire_time"}


async def test_what_is_known_of_credentials_is_stored_and_replaced(office: Renewing) -> None:
    pair = await office.issue("page")
    known = await office.connect("page", pair, expires=timedelta(days=60), refresh_expires=timedelta(days=365))
    assert known.credentials is not None
    assert known.credentials.refresh_time is not None
    assert known.credentials.can_refresh
    again = await office.connect("page", expires=None)
    assert again.credentials is not None
    assert (again.credentials.generation, again.credentials.can_refresh) == (2, False)
    assert again.credentials.next_time is None


async def test_a_provider_without_settings_takes_none(office: Renewing) -> None:
    with pytest.raises(InvalidField) as refused:
        await office.connect("page", settings={"host": "mail.example.com"})
    assert (refused.value.reason, refused.value.metadata) == ("UNKNOWN_SETTING", {"field": "settings.host"})


async def test_settings_are_checked_stored_and_kept(office: Renewing) -> None:
    provider = office.providers["sandbox"]
    provider._check_settings = Mailing.check_settings.__get__(provider._adapter)
    with pytest.raises(InvalidField, match="host"):
        await office.connect("page")
    account = await office.connect("page", settings={"host": " mail.example.com "})
    assert account.settings == {"host": "mail.example.com"}
    assert (await office.connect("page")).settings == account.settings
    (row,) = await office.replica.rows("select settings from social_account")
    assert row.settings == {"host": "mail.example.com"}
