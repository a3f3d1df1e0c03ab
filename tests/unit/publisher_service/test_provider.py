"""Calls of a provider end in time with a value that can be stored, even if its adapter misbehaves."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, Proof, ProviderDown
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Found,
    Level,
    NoProof,
    Outcome,
    Quota,
    RateLimited,
    Rejected,
)
from servicekit.clock import SystemClock

POST = Post(external_account_id="e", access_token="t", channel="c", destination="", text="x", idempotency_key="k")
SECRET = "EAAB-0123456789"
T = Credentials(access_token="t")
NAIVE = datetime(2026, 3, 2, 9, 0)


class Kept(Accepted):
    """An outcome of an adapter's own class."""


class OddAdapter:
    """Raises the error, hangs, or returns the value that it is given."""

    name = "odd"
    rules = SANDBOX_RULES
    proof = Proof.KEYED
    limits = Limits(request_timeout=timedelta(milliseconds=20))

    def __init__(self, behavior: Any) -> None:
        self._behavior = behavior

    async def _do(self) -> Any:
        if isinstance(self._behavior, BaseException):
            raise self._behavior
        if self._behavior == "hang":
            await asyncio.sleep(3600)
        return self._behavior

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        await self._do()

    async def send(self, post: Post) -> Any:
        return await self._do()

    async def look(self, post: Post) -> Any:
        return await self._do()


def provider(behavior: Any) -> Any:
    return Providers([OddAdapter(behavior)], SystemClock()).get("odd")


@pytest.mark.parametrize(
    "behavior",
    [
        KeyError("x"),
        RecursionError(),
        TimeoutError(),
        asyncio.CancelledError(),
        "hang",
        None,
        "text",
        Accepted(external_id="", external_url="u"),
        Accepted(external_id="a\0", external_url="u"),
        Accepted(external_id="\udc00", external_url="u"),
        Accepted(external_id=None, external_url="u"),  # type: ignore[arg-type]
        Found(external_id="x" * 1001, external_url="u"),
        Kept(external_id="x", external_url="u"),
    ],
    ids=lambda behavior: type(behavior).__name__,
)
async def test_nonsense_errors_and_silence_become_values(behavior: Any) -> None:
    sent = await provider(behavior).send(POST)
    assert isinstance(sent, Ambiguous)
    assert sent.reason == "ADAPTER_FAILED"
    assert isinstance(await provider(behavior).look(POST), NoProof)


async def test_a_call_is_cancelled_with_its_task() -> None:
    for call in (provider("hang").send(POST), provider("hang").look(POST), provider("hang").verify("acme", "e", T, {})):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(call)
            await asyncio.sleep(0)
            task.cancel()
        assert task.cancelled()


@pytest.mark.parametrize(
    "behavior", [KeyError("x"), asyncio.CancelledError(), "hang"], ids=lambda behavior: type(behavior).__name__
)
async def test_a_check_of_credentials_that_fails_reports_unreachable(behavior: Any) -> None:
    with pytest.raises(ProviderDown):
        await provider(behavior).verify("acme", "e", T, {})


async def test_deliberate_answers_of_an_adapter_are_passed_on() -> None:
    with pytest.raises(CredentialsRefused, match="no"):
        await provider(CredentialsRefused("no")).verify("acme", "e", T, {})
    assert await provider(Absent()).look(POST) == Absent()


async def test_text_that_cannot_be_stored_is_replaced_and_cut() -> None:
    seen = await provider(Rejected(reason="R\0", message="\udc00" + "m" * 5000)).send(POST)
    assert (seen.reason, len(seen.message)) == ("R\ufffd", 2000)
    assert seen.message.startswith("\ufffd")


@pytest.mark.parametrize(
    "answer",
    [
        Rejected(reason=f"BAD_{SECRET}", message=f"no {SECRET}, {SECRET}"),
        AuthRefused(message="m" * 1996 + SECRET),
        Accepted(external_id="x", external_url=f"https://x/1?token={SECRET}"),
        Ambiguous(reason="R", message=SECRET),
        RateLimited(message=SECRET, retry_after=timedelta(seconds=1)),
    ],
    ids=lambda answer: type(answer).__name__,
)
async def test_a_token_that_the_provider_repeats_is_not_passed_on(answer: Outcome) -> None:
    seen = repr(await provider(answer).send(replace(POST, access_token=SECRET)))
    assert "***" in seen
    assert SECRET[:4] not in seen


async def test_no_look_and_no_check_passes_a_token_on() -> None:
    post = replace(POST, access_token=SECRET)
    assert await provider(NoProof(message=f"no {SECRET}")).look(post) == NoProof(message="no ***")
    with pytest.raises(CredentialsRefused, match=r"^no \*\*\*$"):
        await provider(CredentialsRefused(f"no {SECRET}")).verify("acme", "e", Credentials(access_token=SECRET), {})


async def test_a_name_that_repeats_the_token_proves_nothing() -> None:
    post = replace(POST, access_token=SECRET)
    seen = await provider(Accepted(external_id=f"x-{SECRET}", external_url="u")).send(post)
    assert isinstance(seen, Ambiguous)
    assert SECRET not in repr(seen)
    found = await provider(Found(external_id=SECRET, external_url="u")).look(post)
    assert isinstance(found, NoProof)
    assert SECRET not in repr(found)


async def test_a_token_that_may_be_part_of_any_word_changes_nothing() -> None:
    named = Accepted(external_id="x-t", external_url="u")
    assert await provider(named).send(replace(POST, access_token="t")) == named
    short = Rejected(reason="R", message="a text")
    assert await provider(short).send(replace(POST, access_token="t")) == short


@pytest.mark.parametrize(("said", "kept"), [(-5, 1), (0, 1), (7, 7), (10**6, 86_400)])
async def test_a_requested_wait_is_bounded(said: int, kept: int) -> None:
    seen = await provider(RateLimited(message="m", retry_after=timedelta(seconds=said))).send(POST)
    assert seen.retry_after == timedelta(seconds=kept)


@pytest.mark.parametrize(
    ("said", "kept"),
    [(timedelta.min, timedelta(0)), (timedelta(hours=1), timedelta(hours=1)), (timedelta.max, timedelta(hours=24))],
)
@pytest.mark.parametrize(
    "answer",
    [Accepted(external_id="x", external_url="u"), RateLimited(message="m", retry_after=timedelta(seconds=7))],
    ids=lambda answer: type(answer).__name__,
)
async def test_the_wait_for_a_quota_is_bounded(
    answer: Accepted | RateLimited, said: timedelta, kept: timedelta
) -> None:
    first, second = (Quota(level=Level.CHANNEL, remaining=0, reset_after=wait) for wait in (said, kept))
    seen = await provider(replace(answer, quotas=[first, second])).send(POST)
    assert seen == replace(answer, quotas=(second, second))


async def test_a_publish_time_without_a_zone_is_dropped() -> None:
    seen = await provider(Accepted(external_id="x", external_url="u", publish_time=NAIVE)).send(POST)
    assert seen == Accepted(external_id="x", external_url="u")


def test_an_unknown_provider_is_none() -> None:
    assert Providers([], SystemClock()).get("myspace") is None
