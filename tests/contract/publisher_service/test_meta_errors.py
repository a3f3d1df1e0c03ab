"""Errors of the Graph API are read by their codes; usage headers say how long to wait."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.adapters.providers.facebook import written_by_page
from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.adapters.providers.instagram import written_by_account
from publisher_service.adapters.providers.instagram_containers import container_of
from publisher_service.adapters.providers.meta_errors import meta_error, usage_quotas
from publisher_service.adapters.providers.meta_graph import made
from publisher_service.adapters.providers.meta_posts import recognized, sightings
from publisher_service.domain.outcome import Level, Quota
from publisher_service.domain.provider_error import ErrorClass, ProviderError, wait_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["error", "code", "error_subcode", "is_transient", "message", "id", "target", "data", "attachments", "from"]
)
NEARLY = st.dictionaries(NAMES, JSON | st.dictionaries(NAMES, JSON, max_size=5), max_size=6)
BODIES = st.binary(max_size=200) | (JSON | NEARLY).map(lambda body: json.dumps(body).encode())


def error_of(
    code: int | None,
    subcode: int | None = None,
    *,
    status: int = 400,
    headers: Mapping[str, Any] | None = None,
    **more: Any,
) -> ProviderError:
    error = {"code": code, "error_subcode": subcode, "message": "m", **more}
    lines = {name.encode(): json.dumps(text).encode() for name, text in (headers or {}).items()}
    return meta_error(Answer(status, lines, json.dumps({"error": error}).encode()))


def used_up(level: Level, minutes: int) -> Quota:
    return Quota(level=level, remaining=0, reset_after=timedelta(minutes=minutes))


def business(*minutes: int) -> Mapping[str, Any]:
    return {
        "x-business-use-case-usage": {
            f"{number}": [{"type": "pages", "call_count": 100, "estimated_time_to_regain_access": each}]
            for number, each in enumerate(minutes)
        }
    }


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (error_of(4, 2207051), ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH),
        (error_of(4), ErrorClass.RATE_APP),
        (error_of(100, 1404102), ErrorClass.PERMANENT),
        (error_of(101), ErrorClass.CONFIG),
        (error_of(100, 999), ErrorClass.PERMANENT),
        (error_of(999, is_transient=True), ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH),
        (error_of(999, status=401), ErrorClass.AUTH_EXPIRED),
        (error_of(999, status=429), ErrorClass.RATE_USER),
        (error_of(999, status=500), ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH),
        (error_of(999, status=400), ErrorClass.PERMANENT),
        (error_of(190, status=500), ErrorClass.AUTH_EXPIRED),
        (error_of(299), ErrorClass.AUTH_SCOPE),
        (error_of(300), ErrorClass.PERMANENT),
        (error_of(None, status=401), ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH),
        (error_of(None, status=404), ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH),
        (error_of(None, status=429), ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH),
    ],
)
def test_the_most_exact_code_decides(seen: ProviderError, expected: ErrorClass) -> None:
    assert seen.kind is expected


def test_a_wait_is_read_in_minutes_and_the_longest_counts() -> None:
    assert error_of(32, headers=business(3, 19)).wait == timedelta(minutes=19)
    assert error_of(4, 2207051, headers=business(19)).wait is None, "no limit has said so"


def test_a_limit_without_a_wait_has_that_of_its_class() -> None:
    assert wait_of(error_of(32, headers=business(0))) == wait_of(error_of(32))
    assert wait_of(error_of(4)) == timedelta(hours=1)


def test_an_absurd_wait_is_cut_to_a_day() -> None:
    assert error_of(32, headers=business(10**30)).wait == timedelta(hours=24)


@pytest.mark.parametrize(
    ("name", "usage", "expected"),
    [
        (
            "x-app-usage",
            {"call_count": 100},
            [used_up(Level.APPLICATION, 5)],
        ),
        ("x-app-usage", {"total_time": 99}, []),
        (
            "x-page-usage",
            {"total_cputime": 130},
            [used_up(Level.ACCOUNT, 5)],
        ),
        (
            "x-business-use-case-usage",
            {"1": [{"call_count": 28, "estimated_time_to_regain_access": 7}]},
            [used_up(Level.ACCOUNT, 7)],
        ),
        ("x-business-use-case-usage", {"1": [{"call_count": 28, "estimated_time_to_regain_access": 0}]}, []),
    ],
)
def test_limits_that_are_used_up_are_quotas(name: str, usage: Mapping[str, Any], expected: list[Quota]) -> None:
    assert list(usage_quotas(Answer(200, {name.encode(): json.dumps(usage).encode()}, b""))) == expected


@given(body=BODIES, header=BODIES, status=st.integers(100, 599))
def test_no_answer_is_too_odd_to_be_read(body: bytes, header: bytes, status: int) -> None:
    names = (b"x-app-usage", b"x-page-usage", b"x-business-use-case-usage", b"retry-after")
    answer = Answer(status, dict.fromkeys(names, header), body)
    assert isinstance(meta_error(answer), ProviderError)
    usage_quotas(answer)
    made(answer)


@given(entries=st.lists(NEARLY | JSON, max_size=4), text=st.text(), media=st.frozensets(st.text(), max_size=2))
def test_no_list_is_too_odd_to_be_searched(entries: list[object], text: str, media: frozenset[str]) -> None:
    for is_own in (None, written_by_page("1"), written_by_account("1")):
        seen = sightings(entries, text="message", time="code", url="id", is_own=is_own)
        if seen is None:
            continue
        recognized(seen, text=text, since=datetime(2026, 3, 2, tzinfo=UTC), media=media)


@given(handle=st.text() | NEARLY.map(json.dumps))
def test_no_handle_is_too_odd_to_be_read(handle: str) -> None:
    container_of(handle)
