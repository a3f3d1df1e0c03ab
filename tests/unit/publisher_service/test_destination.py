from dataclasses import replace
from datetime import UTC, datetime

import pytest

from publisher_service.domain.destination import (
    Destination,
    DestinationChange,
    DestinationReason,
    DestinationState,
    activated,
    deactivated,
)
from publisher_service.domain.post_job import Target
from servicekit.faults import Conflict, NotFound

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CHAT = Target(social_account_id="bot", channel="telegram", destination="@chat")
FAILED = Destination(
    organization_id="acme",
    target=CHAT,
    state=DestinationState.INACTIVE,
    state_reason=DestinationReason.FAILURES,
    failures=5,
    error_message="there is no such chat",
    last_success_time=NOW,
    last_failure_time=NOW,
    deactivate_time=NOW,
    version=7,
)


def off(*, note: str = "", etag: str = "") -> DestinationChange:
    return DestinationChange(organization_id="acme", target=CHAT, state=DestinationState.INACTIVE, note=note, etag=etag)


def test_activating_forgets_failures_and_keeps_the_times() -> None:
    after = activated(FAILED, CHAT, etag="7")
    assert after == Destination(
        organization_id="acme",
        target=CHAT,
        state=DestinationState.ACTIVE,
        last_success_time=NOW,
        last_failure_time=NOW,
        version=8,
    )


def test_activating_an_active_destination_keeps_its_etag() -> None:
    failing = replace(activated(FAILED, CHAT, etag=""), failures=3, error_message="no")
    assert activated(failing, CHAT, etag=failing.etag) == replace(failing, failures=0, error_message="")


def test_activating_an_unknown_destination_is_refused() -> None:
    with pytest.raises(NotFound) as refusal:
        activated(None, CHAT, etag="")
    assert refusal.value.reason == "DESTINATION_NOT_FOUND"


def test_deactivating_takes_the_note_as_the_message() -> None:
    after = deactivated(FAILED, off(note="she left", etag="7"), now=NOW)
    assert (after.state, after.state_reason, after.error_message) == ("INACTIVE", "DEACTIVATED", "she left")
    assert (after.failures, after.deactivate_time, after.version) == (5, NOW, 8)


def test_deactivating_again_changes_the_note_alone() -> None:
    once = deactivated(FAILED, off(note="she left"), now=NOW)
    again = deactivated(once, off(note="for good", etag=once.etag), now=NOW.replace(hour=10))
    assert again == replace(once, error_message="for good")


def test_an_unknown_destination_is_deactivated_before_anything_is_sent() -> None:
    after = deactivated(None, off(), now=NOW)
    assert (after.organization_id, after.target, after.state, after.version) == ("acme", CHAT, "INACTIVE", 1)


@pytest.mark.parametrize("etag", ["6", "x"])
def test_a_stale_etag_is_refused(etag: str) -> None:
    with pytest.raises(Conflict) as refusal:
        activated(FAILED, CHAT, etag=etag)
    with pytest.raises(Conflict):
        deactivated(FAILED, off(etag=etag), now=NOW)
    assert (refusal.value.reason, refusal.value.metadata["etag"]) == ("ETAG_MISMATCH", "7")


def test_a_destination_that_is_not_known_has_no_etag_to_match() -> None:
    with pytest.raises(Conflict):
        deactivated(None, off(etag="1"), now=NOW)
