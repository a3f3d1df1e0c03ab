"""Messages to webhooks are signed as the specification says, and verified by what they were signed with."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.adapters.standard_webhooks import (
    ID,
    SIGNATURE,
    TIMESTAMP,
    InvalidSecret,
    NotVerified,
    new_secret,
    require_secret,
    signed,
    verify,
)
from servicekit.run.settings import Secret

# The example of the specification.
SECRET = Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
MESSAGE = "msg_p5jXN8AQM9LWM0D4loKWxJek"
SHORT = f"whsec_{base64.b64encode(bytes(23)).decode()}"
AT = datetime.fromtimestamp(1614265330, UTC)
BODY = b'{"test": 2432232314}'
SIGNED = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_example_of_the_specification_is_signed() -> None:
    headers = signed(MESSAGE, BODY, [SECRET], at=AT)
    assert headers == {ID: MESSAGE, TIMESTAMP: "1614265330", SIGNATURE: SIGNED}


@given(st.binary(max_size=200))
def test_what_is_signed_is_verified(body: bytes) -> None:
    secret = new_secret()
    assert verify(signed("n1", body, [secret], at=AT), body, secret, now=AT) == "n1"


def test_during_a_rotation_either_secret_verifies() -> None:
    old, new = new_secret(), new_secret()
    headers = signed("n1", BODY, [new, old], at=AT)
    assert len(headers[SIGNATURE].split(" ")) == 2
    for secret in (old, new):
        assert verify(headers, BODY, secret, now=AT) == "n1"
    with pytest.raises(NotVerified):
        verify(headers, BODY, new_secret(), now=AT)


@pytest.mark.parametrize(
    ("changes", "body", "away"),
    [
        ({ID: "n2"}, BODY, timedelta(0)),
        ({TIMESTAMP: "1614265331"}, BODY, timedelta(0)),
        ({}, BODY + b" ", timedelta(0)),
        ({SIGNATURE: ""}, BODY, timedelta(0)),
        ({SIGNATURE: "v1,"}, BODY, timedelta(0)),
        ({SIGNATURE: SIGNED.replace("v1", "v2")}, BODY, timedelta(0)),
        ({SIGNATURE: "v1,\N{SNOWMAN}"}, BODY, timedelta(0)),
        ({TIMESTAMP: "\N{SUPERSCRIPT TWO}"}, BODY, timedelta(0)),
        ({TIMESTAMP: "9" * 40}, BODY, timedelta(0)),
        ({TIMESTAMP: "-1"}, BODY, timedelta(0)),
        ({}, BODY, timedelta(minutes=5, seconds=1)),
        ({}, BODY, -timedelta(minutes=5, seconds=1)),
    ],
    ids=str,
)
def test_what_was_changed_or_is_old_is_not_verified(changes: dict[str, str], body: bytes, away: timedelta) -> None:
    headers = signed("n1", BODY, [SECRET], at=AT) | changes
    with pytest.raises(NotVerified):
        verify(headers, body, SECRET, now=AT + away)


@pytest.mark.parametrize("missing", [ID, TIMESTAMP, SIGNATURE])
def test_a_missing_header_is_named(missing: str) -> None:
    headers = signed("n1", BODY, [SECRET], at=AT)
    del headers[missing]
    with pytest.raises(NotVerified, match=missing):
        verify(headers, BODY, SECRET, now=AT)


def test_new_secrets_differ_and_show_nothing() -> None:
    first, second = new_secret(), new_secret()
    assert first != second
    assert len(base64.b64decode(first.reveal().removeprefix("whsec_"))) == 32
    assert first.reveal() not in repr(first) + str(first)


@pytest.mark.parametrize(
    "text",
    ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_canary!", SHORT],
)
def test_a_malformed_secret_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(InvalidSecret) as refused:
        require_secret(Secret(text))
    assert "canary" not in str(refused.value)
    assert require_secret(SECRET) is SECRET


@pytest.mark.parametrize("message_id", ["", "a.b", "a\nb", "\N{SNOWMAN}"])
def test_an_id_that_would_make_the_signature_ambiguous_is_refused(message_id: str) -> None:
    with pytest.raises(ValueError, match="id of a message"):
        signed(message_id, BODY, [SECRET], at=AT)
