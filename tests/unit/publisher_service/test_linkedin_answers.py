"""Any answer of LinkedIn is read without an error, and only what is certain counts."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.http_origin import Answer
from publisher_service.adapters.providers.linkedin_api import (
    commented,
    is_comment,
    is_post,
    may_be_made_since,
    next_page,
    published,
)
from publisher_service.adapters.providers.linkedin_errors import duplicate_of, linkedin_error, until_reset
from publisher_service.adapters.providers.linkedin_lists import comment_of, post_of, verdict
from publisher_service.adapters.providers.linkedin_media import ids_of, media_content
from publisher_service.adapters.providers.linkedin_parts import parts_of
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.outcome import Accepted, Ambiguous, Found
from publisher_service.domain.provider_error import ErrorClass, outcome_of, preparing_of
from tests.unit.publisher_service.json_answers import JSON, answers, objects

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
MILLISECONDS = int(NOW.timestamp() * 1000)
URN = f"urn:li:share:{MILLISECONDS << 22}"
PAGE = "urn:li:organization:1"
POST = Post(
    external_account_id="1",
    access_token="t",
    channel="linkedin_page",
    destination="",
    text="hello",
    idempotency_key="k",
    since=NOW,
    follows="urn:li:share:1",
)
ERRORS = objects(
    {
        "message": st.sampled_from(
            [
                f"Content is a duplicate of {URN}",
                "Resource level throttle APPLICATION DAY limit",
                "x" * 9000,
                "\0\ud800",
            ]
        ),
        "code": st.sampled_from(["DUPLICATE_POST", "ACCESS_DENIED", "MEDIA_ASSET_WAITING_UPLOAD"]),
        "serviceErrorCode": st.sampled_from([65601, 65602, 10**30]),
        "errorDetails": objects({"inputErrors": st.lists(objects({"code": st.just("DUPLICATE_POST")}))}),
    }
)
COMMENT = "urn:li:comment:(urn:li:activity:1,2)"
ENTRIES = objects(
    {
        "id": st.just(URN),
        "author": st.just(PAGE),
        "actor": st.just(PAGE),
        "commentary": st.just("hello"),
        "message": objects({"text": st.just("hello")}),
        "commentUrn": st.just(COMMENT),
        "createdAt": st.sampled_from([MILLISECONDS, 10**40, -1]),
        "created": objects({"time": st.sampled_from([MILLISECONDS, 10**40])}),
        "lastModifiedAt": st.just(MILLISECONDS),
        "lifecycleState": st.sampled_from(["PUBLISHED", "DRAFT"]),
    }
)


@given(answers(ERRORS))
def test_every_answer_is_an_error_of_some_class(answer: Answer) -> None:
    error = linkedin_error(answer)
    assert outcome_of(error) is not None
    assert preparing_of(error) is not None
    assert len(error.message) <= 500
    assert not (first := duplicate_of(answer)) or is_post(first)


@given(answers(objects({"commentUrn": st.just(COMMENT)})))
def test_a_success_names_what_was_made_or_proves_nothing(answer: Answer) -> None:
    for seen, is_named in ((published(answer), is_post), (commented(answer, "urn:li:share:1"), is_comment)):
        assert isinstance(seen, Ambiguous) or (isinstance(seen, Accepted) and is_named(seen.external_id))


@given(st.lists(st.one_of(ENTRIES, JSON), max_size=4))
def test_any_list_is_judged(entries: list[Any]) -> None:
    for judge, is_named in ((post_of(POST, PAGE), is_post), (comment_of(POST, PAGE), is_comment)):
        seen = verdict([each.hit for each in map(judge, entries) if each is not None and each.is_hit])
        assert not isinstance(seen, Found) or is_named(seen.external_id)


@given(JSON, st.text(), objects({"links": st.lists(objects({"rel": st.just("next")}))}))
def test_anything_else_that_is_read_may_be_of_any_kind(value: Any, text: str, paging: dict[str, Any]) -> None:
    ids_of(value)
    next_page({"paging": paging})
    assert may_be_made_since(text, NOW) in (True, False)
    media = (ContentMedia(url="https://example.com/a.jpg"),)
    assert media_content(replace(POST, media=media, handle=text)) is None
    assert media_content(replace(POST, media=media, handle=json.dumps({"urns": value, "uploaded": 1}))) is None


INSTRUCTIONS = objects({"uploadUrl": st.just("u"), "firstByte": st.integers(0, 9), "lastByte": st.integers(0, 9)})


@given(
    objects({"uploadUrl": st.just("u"), "uploadInstructions": st.lists(INSTRUCTIONS, max_size=4)}), st.integers(1, 10)
)
def test_parts_are_the_whole_file_or_none(value: dict[str, Any], size: int) -> None:
    parts = parts_of(value, size=size)
    assert not parts or sum(part.size for part in parts) == size


@pytest.mark.parametrize(
    ("urn", "is_possible"),
    [
        (URN, True),
        (f"urn:li:ugcPost:{MILLISECONDS - 59_000 << 22}", True),
        (f"urn:li:share:{MILLISECONDS - 61_000 << 22}", False),
        ("urn:li:share:7141138937766391808", False),
        # No time: nothing is known.
        ("urn:li:share:1", True),
        (f"urn:li:share:{(1 << 64) - 1}", True),
    ],
)
def test_the_number_of_a_post_says_when_it_was_made(urn: str, is_possible: bool) -> None:
    assert may_be_made_since(urn, NOW) is is_possible


@pytest.mark.parametrize("time", ["00:00:00", "12:00:00", "23:59:59"])
def test_a_day_ends_at_midnight_utc_and_a_little_later(time: str) -> None:
    now = datetime.fromisoformat(f"2026-12-31T{time}+00:00")
    ends = now + until_reset(now)
    assert ends == datetime(2027, 1, 1, 0, 3, tzinfo=UTC)
    assert until_reset(now) >= timedelta(minutes=3)


@pytest.mark.parametrize("status", [200, 302, 400, 403, 408, 404, 500])
def test_an_answer_that_is_not_linkedins_proves_nothing(status: int) -> None:
    assert linkedin_error(Answer(status, {}, b"<html>")).kind is ErrorClass.UNKNOWN_OUTCOME_ON_PUBLISH


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("invalid_grant", ErrorClass.AUTH_REVOKED),
        ("invalid_request", ErrorClass.PERMANENT),
        ("invalid_redirect_uri", ErrorClass.PERMANENT),
        ("invalid_client", ErrorClass.CONFIG),
        ("unauthorized_client", ErrorClass.CONFIG),
    ],
)
@pytest.mark.parametrize("status", [400, 401])
def test_the_token_endpoint_has_codes_of_its_own(status: int, code: str, kind: ErrorClass) -> None:
    body = json.dumps({"error": code, "error_description": "because"}).encode()
    error = linkedin_error(Answer(status, {}, body))
    assert (error.kind, error.reason, error.message) == (kind, code, "because")
