"""A webhook is called once per attempt, at a checked address, and never where it redirects to."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.standard_webhooks import new_secret, verify
from publisher_service.adapters.webhooks import Webhooks, asked_wait
from publisher_service.domain.delivery import Accepted, NotAccepted
from testkit.clocks import START
from testkit.webhook_receiver import WebhookReceiver

SECRET = new_secret()
BODY = b'{"type":"test"}'


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with WebhookReceiver() as receiver:
        yield receiver


async def post(receiver: WebhookReceiver, url: str = "", seconds: float = 5) -> Accepted | NotAccepted:
    outside = Outside(private_hosts=frozenset({receiver.place}))
    webhooks = Webhooks(outside, timeout=timedelta(seconds=seconds))
    return await webhooks.post("acme", url or receiver.url, "msg_1", BODY, [SECRET], at=START)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
async def test_success_is_any_2xx(receiver: WebhookReceiver, status: int) -> None:
    receiver.answer(status)
    assert await post(receiver) == Accepted()
    (posted,) = receiver.posted
    assert verify(posted.headers, posted.body, SECRET, now=START) == "msg_1"
    assert posted.path == "/hook"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_a_failure_and_not_followed(receiver: WebhookReceiver, status: int) -> None:
    receiver.answer(status, location=receiver.url)
    result = await post(receiver)
    assert isinstance(result, NotAccepted)
    assert (result.reason, result.is_final) == (f"HTTP_{status}", False)
    assert len(receiver.posted) == 1


@pytest.mark.parametrize(
    ("status", "is_gone", "is_throttled"),
    [
        (400, False, False),
        (410, True, False),
        (429, False, True),
        (500, False, False),
        (502, False, True),
        (504, False, True),
    ],
)
async def test_other_answers_are_judged(
    receiver: WebhookReceiver, status: int, is_gone: bool, is_throttled: bool
) -> None:
    receiver.answer(status, retry_after="7")
    result = await post(receiver)
    assert isinstance(result, NotAccepted)
    assert (result.is_gone, result.is_throttled, result.retry_after) == (is_gone, is_throttled, timedelta(seconds=7))


async def test_a_lost_or_late_answer_is_a_failure(receiver: WebhookReceiver) -> None:
    receiver.lose()
    assert isinstance(await post(receiver), NotAccepted)
    receiver.awake.clear()
    late = await post(receiver, seconds=0.2)
    assert isinstance(late, NotAccepted)
    assert late.reason == "TIMEOUT"


@pytest.mark.parametrize("url", ["https://169.254.169.254/", "http://127.0.0.1:1/", "https://localhost/"])
async def test_a_forbidden_address_is_not_called(receiver: WebhookReceiver, url: str) -> None:
    refused = await post(receiver, url)
    assert isinstance(refused, NotAccepted)
    assert refused.reason.startswith("URL_")
    assert not receiver.posted


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (b"5", 5),
        (b"Mon, 02 Mar 2026 09:01:00 GMT", 60),
        (b"Mon, 02 Mar 2026 08:00:00 GMT", 0),
        (b"999999999999", 86_400),
        (b"soon", None),
        (b"-5", None),
        (b"", None),
        (b"\xff", None),
        (b"Mon, 01 Jan 99999999999 00:00:00 GMT", None),
        (b"Mon, 01 Jan 2026 00:00:00 +99999999999", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(said: bytes, seconds: int | None) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert asked_wait({b"retry-after": said}, now=START) == expected
