"""No answer of Unipile, of a webhook or of a mail server makes an adapter raise, and none but a proper one is proof."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.providers import unipile_errors, webhook
from publisher_service.adapters.providers.adapter import Limits, Post
from publisher_service.adapters.providers.calls import Calls
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.media_source import MediaSource
from publisher_service.adapters.providers.smtp_session import SmtpFailed, SmtpLost, SmtpSession
from publisher_service.adapters.providers.unipile import UnipileAdapter
from publisher_service.adapters.providers.unipile_looks import UnipileLooks
from publisher_service.adapters.providers.webhook import WebhookAdapter
from publisher_service.domain.outcome import Absent, Accepted, Found
from publisher_service.domain.provider_error import outcome_of, preparing_of
from servicekit.clock import SystemClock
from servicekit.run.settings import Secret

LIMITS = Limits(request_timeout=timedelta(seconds=1))
NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
POST = Post(
    external_account_id="acc-1",
    access_token="token",
    channel="email",
    destination="grace@example.org",
    title="Hello",
    text="hello",
    idempotency_key="job-1",
    since=NOW,
)
NAMES = st.sampled_from([
    "type", "title", "detail", "status", "object", "items", "cursor", "id", "provider_id", "tracking_id", "message_id",
    "invitation_id", "account_id", "url", "chat_id", "text", "subject", "role", "date", "timestamp", "is_sender",
    "to_attendees", "identifier", "attendee_provider_id", "invited_user_id", "invitation_text", "parsed_datetime",
])  # fmt: skip
TEXTS = st.sampled_from([
    "errors/limit_exceeded", "errors/unexpected_error", "errors/x", "sent", "Hello", "hello", "grace@example.org",
    "acc-1", "\0", "\ud800", "2026-03-02T09:30:00.000Z", "2026-03-02T09:30:00", "https://example.com",
])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=12,
)
BODIES = VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=200)
ANSWERS = st.builds(
    Answer,
    st.sampled_from([200, 201, 202, 204, 301, 400, 401, 404, 408, 409, 410, 418, 422, 429, 500, 503, 504])
    | st.integers(100, 999),
    st.dictionaries(st.sampled_from([b"retry-after", b"content-type"]), st.binary(max_size=12), max_size=2),
    BODIES,
)
CHANNELS = ["email", "linkedin_message", "linkedin_inmail", "linkedin_connection"]


@settings(max_examples=300)
@given(ANSWERS)
def test_any_answer_has_a_class(answer: Answer) -> None:
    for classify in (unipile_errors.classify_unipile, webhook.classify_webhook):
        error = classify(answer)
        assert outcome_of(error)
        assert preparing_of(error)
        assert len(error.message) < 1100
        assert error.wait is None or timedelta(0) <= error.wait <= timedelta(days=1)


@settings(max_examples=200)
@given(ANSWERS)
async def test_a_webhook_accepts_by_2xx_alone(answer: Answer) -> None:
    seen = webhook._outcome(POST, answer)
    assert isinstance(seen, Accepted) is (200 <= answer.status < 300)


@settings(max_examples=200)
@given(ANSWERS)
async def test_unipile_accepts_only_by_a_name(answer: Answer) -> None:
    adapter = UnipileAdapter(
        HttpOrigin("http://127.0.0.1:1", connections=1),
        LIMITS,
        api_key=Secret("unipile-key"),
        media=cast(MediaSource, None),
    )
    for channel in CHANNELS:
        seen = adapter._outcome(replace(POST, channel=channel), answer)
        if isinstance(seen, Accepted):
            assert answer.status in {200, 201}
            assert seen.external_id in json.loads(answer.body).values()


class Origin:
    """Answers every read with the same."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    async def get(self, _path: str, _headers: Mapping[str, str], *, timeout: timedelta) -> Answer:
        assert timeout > timedelta(0)
        return self.answer


ITEMS = st.lists(st.dictionaries(NAMES, VALUES, max_size=10), max_size=4)
LISTS = st.builds(
    lambda items, rest: Answer(200, {}, json.dumps({"items": items, "cursor": None} | rest).encode()),
    ITEMS,
    st.dictionaries(NAMES, VALUES, max_size=2),
)


@settings(max_examples=300)
@given(ANSWERS | LISTS)
async def test_any_list_is_looked_through(answer: Answer) -> None:
    looks = UnipileLooks(
        Calls("Unipile", cast(HttpOrigin, Origin(answer)), timeout=timedelta(seconds=1)),
        {},
        classify=unipile_errors.classify_unipile,
    )
    seen: list[Any] = [
        await looks.email(POST),
        await looks.message(POST, "ACoAAgrace-hopper"),
        await looks.invitation(POST, "ACoAAgrace-hopper"),
    ]
    is_list = answer.status == 200 and answer.body.startswith(b'{"')
    assert is_list or not any(isinstance(each, Found | Absent) for each in seen)


@settings(max_examples=300)
@given(st.binary(max_size=300) | st.text(alphabet="0123456789- \r\nOK", max_size=60).map(str.encode), st.booleans())
async def test_any_bytes_of_a_mail_server_are_a_reply_or_a_loss(data: bytes, whole: bool) -> None:
    reader = asyncio.StreamReader(limit=4096)
    reader.feed_data(data + b"\r\n" * whole)
    reader.feed_eof()
    session = SmtpSession(reader, cast(asyncio.StreamWriter, None), hidden=())
    try:
        reply = await session._reply()
    except (SmtpLost, SmtpFailed):
        return
    assert 200 <= reply.code < 600
    assert data.startswith(str(reply.code)[:1].encode())


@pytest.mark.parametrize("lines", [1, 99, 100, 101])
async def test_a_reply_of_many_lines_is_bounded(lines: int) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"250-more and more\r\n" * (lines - 1) + b"250 end\r\n")
    reader.feed_eof()
    session = SmtpSession(reader, cast(asyncio.StreamWriter, None), hidden=())
    if lines > 100:
        with pytest.raises(SmtpLost, match="endless"):
            await session._reply()
    else:
        assert len((await session._reply()).text) < 2200


async def test_the_limits_are_those_of_the_networks() -> None:
    hook = WebhookAdapter(Outside(), LIMITS, clock=SystemClock())
    assert hook.limits.request_timeout == timedelta(seconds=2)
