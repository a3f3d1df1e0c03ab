"""Reading schedule rules."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from servicekit.faults import NotFound

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Rules


async def test_organizations_do_not_see_each_others_rules(rules: "Rules") -> None:
    await rules.create()
    await rules.create(organization_id="umbrella", terms=replace(rules.weekly, name="Theirs"))
    assert [(await rules.get(organization_id=each)).name for each in ("acme", "umbrella")] == [
        rules.weekly.name,
        "Theirs",
    ]
    await rules.delete(organization_id="umbrella")
    assert await rules.get()
    for call in (
        rules.get(organization_id="umbrella"),
        rules.update(organization_id="umbrella", name="Other"),
        rules.delete(organization_id="umbrella"),
    ):
        with pytest.raises(NotFound):
            await call
    assert (await rules.targets(organization_id="umbrella")).targets == ()
    assert await rules.ids(organization_id="umbrella") == ""
