"""Naming the hold of an account."""

import pytest

from queue_service.domain.hold import Hold


def hold(account: str) -> Hold:
    return Hold(organization_id="acme", social_account_id=account, revision=1, in_force=True)


def test_the_hold_of_an_account_has_its_name() -> None:
    assert hold("page").id == "queue-page"
    assert hold("page").account == ("acme", "page")


@pytest.mark.parametrize("length", [58, 59, 64])
def test_every_account_has_a_hold_of_its_own_with_a_valid_id(length: int) -> None:
    ids = {hold("a" * (length - 1) + last).id for last in "ab"}
    assert len(ids) == 2
    assert all(len(each) <= 64 and each.startswith("queue-") for each in ids)
