"""Deleting schedule rules."""

from typing import TYPE_CHECKING

import pytest

from servicekit.faults import InvalidField, NotFound

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Rules


async def test_a_deleted_rule_is_gone(rules: "Rules") -> None:
    await rules.create()
    assert (await rules.targets()).targets
    await rules.delete()
    for call in (rules.get(), rules.update(name="Other"), rules.delete()):
        with pytest.raises(NotFound) as refused:
            await call
        assert refused.value.reason == "SCHEDULE_RULE_NOT_FOUND"
    assert (await rules.ids(), await rules.ids("brand")) == ("", "")
    assert (await rules.targets()).targets == ()


async def test_a_repeated_request_gets_the_first_answer(rules: "Rules") -> None:
    created = await rules.create("", request_id="q1")
    updated = await rules.update(created.id, name="Other", request_id="q1")
    await rules.delete(created.id, request_id="q1")
    assert await rules.create("", request_id="q1") == created
    assert await rules.update(created.id, name="Other", request_id="q1") == updated
    await rules.delete(created.id, request_id="q1")
    assert len(rules.announced.events) == 3
    with pytest.raises(InvalidField) as refused:
        await rules.create("", request_id="q1", digest=b"other")
    assert refused.value.reason == "REQUEST_ID_REUSED"
