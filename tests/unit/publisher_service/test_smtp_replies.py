"""Replies of mail servers have classes; whose fault a refusal is depends on the step."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.adapters.providers.smtp_replies import Reply, Step, classify_reply, classify_reply_at
from publisher_service.domain.provider_error import ErrorClass, outcome_of


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (250, "2.0.0 ok", ErrorClass.OK),
        (550, "5.1.1 unknown", ErrorClass.TARGET_GONE),
        (550, "5.1.10 null MX", ErrorClass.TARGET_GONE),
        (550, "5.1.12 what is that", ErrorClass.PERMANENT),
        (550, "4.1.1 the classes differ", ErrorClass.PERMANENT),
        (550, "5.2.1 mailbox disabled", ErrorClass.TARGET_GONE),
        (552, "5.2.2 mailbox full", ErrorClass.PERMANENT),
        (550, "5.7.1 relaying denied", ErrorClass.PERMANENT),
        (550, "no such user", ErrorClass.PERMANENT),
        (550, "5.4.5 daily limit", ErrorClass.QUOTA_EXHAUSTED),
        (450, "5.1.1 the classes differ", ErrorClass.RETRY_LATER),
        (354, "go on", ErrorClass.UNKNOWN_OUTCOME),
        (0, "", ErrorClass.UNKNOWN_OUTCOME),
        (999, "", ErrorClass.UNKNOWN_OUTCOME),
    ],
)
def test_a_reply_has_the_class_of_its_enhanced_code(code: int, text: str, kind: ErrorClass) -> None:
    assert classify_reply(code, text).kind is kind


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Step.HELLO, ErrorClass.CONFIG),
        (Step.LOGIN, ErrorClass.AUTH_USER_ACTION),
        (Step.SENDER, ErrorClass.PERMANENT),
        (Step.RECIPIENT, ErrorClass.TARGET_GONE),
        (Step.DATA, ErrorClass.TARGET_GONE),
        (Step.END, ErrorClass.TARGET_GONE),
    ],
)
def test_a_dead_address_is_the_recipients_only_once_it_was_named(step: Step, kind: ErrorClass) -> None:
    assert classify_reply_at(step, Reply(code=550, text="5.1.1 unknown")).kind is kind


def test_a_wait_is_asked_for_where_the_next_mail_would_meet_it_too() -> None:
    waits = {text: classify_reply(code, text).wait for code, text in [(421, "a"), (450, "b"), (452, "c"), (454, "d")]}
    assert waits == {"a": timedelta(minutes=5), "b": None, "c": timedelta(minutes=5), "d": timedelta(minutes=5)}


@given(st.integers(0, 2000), st.text())
def test_any_reply_has_a_class_and_an_outcome(code: int, text: str) -> None:
    for step in Step:
        error = classify_reply_at(step, Reply(code=code, text=text))
        assert outcome_of(error)
        assert len(error.message) < 450
