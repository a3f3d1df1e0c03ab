import pytest

from channels import KNOWN
from drafts_service.domain.target import Target, checked_targets
from servicekit.faults import InvalidField, InvalidRequest


def target(channel: str, account: str = "account", destination: str = "") -> Target:
    return Target(social_account_id=account, channel=channel, destination=destination)


def field_of(refusal: InvalidRequest) -> str:
    (violation,) = refusal.violations
    return violation.field


def test_channels_of_targets_are_normalised() -> None:
    given = [target(" Instagram"), target("linkedin"), target("telegram", destination="@news")]
    assert checked_targets(given) == (
        target("instagram_feed"),
        target("linkedin_profile"),
        target("telegram", destination="@news"),
    )


def test_an_unknown_channel_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidField) as refusal:
        checked_targets([target("facebook"), target("myspace")])
    assert field_of(refusal.value) == "draft.targets[1].channel"
    assert refusal.value.reason == "UNKNOWN_CHANNEL"
    assert all(name in refusal.value.message for name in KNOWN)


def test_two_targets_that_normalise_to_one_are_refused() -> None:
    with pytest.raises(InvalidField) as refusal:
        checked_targets([target("facebook"), target("linkedin"), target("linkedin_profile")])
    assert field_of(refusal.value) == "draft.targets[2]"
    assert "draft.targets[1]" in refusal.value.message


def test_one_account_may_post_to_several_destinations() -> None:
    given = [target("telegram", destination="@a"), target("telegram", destination="@b"), target("telegram", "other")]
    assert checked_targets(given) == tuple(given)


@pytest.mark.parametrize("number", [0, 26])
def test_a_draft_has_1_to_25_targets(number: int) -> None:
    with pytest.raises(InvalidField) as refusal:
        checked_targets([target("facebook", f"account-{index}") for index in range(number)])
    assert field_of(refusal.value) == "draft.targets"
