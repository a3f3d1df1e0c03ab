"""Each recorded outcome is one log line."""

import logging

import pytest

from publisher_service.application import post_log
from publisher_service.domain.outcome import (
    Rejected,
)
from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, a_sent, claims_in, outcome_lines


async def test_only_a_recorded_outcome_is_logged_and_only_once(
    replica: Replica, hasty: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger=post_log.__name__)
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await hasty.claim([a_command(name)]))
    await replica.recover()
    assert outcome_lines(caplog) == ["post unknown"]
    await replica.settle([a_sent(claimed, Rejected(reason="TOO_LONG", message=""))])
    assert outcome_lines(caplog) == []
    await replica.settle([a_sent(claimed)])
    assert outcome_lines(caplog) == ["post published"]
    await replica.settle([a_sent(claimed)])
    assert outcome_lines(caplog) == []


async def test_a_post_whose_target_is_removed_is_one_log_line(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger=post_log.__name__)
    (name,) = await replica.posts(1)
    await replica.save(a_draft(name, "another", version=2))
    assert outcome_lines(caplog) == ["post canceled"]
