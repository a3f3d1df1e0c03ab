import logging

import pytest

from publisher_service.application import destination_log
from publisher_service.application.destination_log import report_deactivated
from publisher_service.domain.destination import Deactivation


def test_each_deactivation_is_a_line_with_account_channel_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    both = [Deactivation("acme", "bot", "telegram", "FAILURES"), Deactivation("acme", "bot", "email", "DEACTIVATED")]
    with caplog.at_level(logging.WARNING, destination_log.__name__):
        report_deactivated(both)
    assert [(record.getMessage(), record.channel, record.reason) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("destination deactivated", "telegram", "FAILURES"),
        ("destination deactivated", "email", "DEACTIVATED"),
    ]
