"""Labels of outcomes and findings."""

from publisher_service.domain.outcome import (
    FINDING_LABELS,
    FINDINGS,
    OUTCOME_LABELS,
    OUTCOMES,
    Absent,
    Accepted,
    NotSent,
    label,
)


def test_each_outcome_and_finding_has_a_label_of_its_own() -> None:
    labels = {*OUTCOME_LABELS, *FINDING_LABELS}
    assert len(labels) == len({*OUTCOMES, *FINDINGS})


def test_a_label_names_the_class_of_its_outcome() -> None:
    """Dashboards and alerts use these names."""
    assert label(Accepted(external_id="x", external_url="")) == "accepted"
    assert label(NotSent(reason="R", message="")) == "not_sent"
    assert label(Absent()) == "absent"
