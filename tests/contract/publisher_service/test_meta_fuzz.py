"""Any answer of Meta ends each call of its adapters with a value of the right kind."""

import asyncio
import json
from collections.abc import AsyncIterable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from publisher_service.adapters.providers.adapter import CredentialsRefused, Post, ProviderDown
from publisher_service.adapters.providers.facebook import FacebookAdapter
from publisher_service.adapters.providers.http_origin import Answer, HttpOrigin
from publisher_service.adapters.providers.instagram import InstagramAdapter
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import FINDINGS, OUTCOMES
from publisher_service.domain.preparation import PREPARING
from testkit.clocks import START, FrozenClock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import LIMITS
from tests.contract.publisher_service.scenes_meta import FEED, PAGE

STATES = ["PUBLISHED", "FINISHED", "IN_PROGRESS", "ERROR", "ready", "1", ""]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["PUBLISHED", "FINISHED", "ready", "1", ""]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
FIELDS = """
    id error code error_subcode status status_code video_status published success data paging next cursors after config
    quota_usage quota_total message caption created_time timestamp attachments target
"""
NAMES = st.sampled_from(FIELDS.split())
OBJECTS = st.recursive(
    st.dictionaries(NAMES, VALUES, max_size=5),
    lambda inner: st.dictionaries(NAMES, VALUES | inner | st.lists(inner, max_size=2), max_size=5),
    max_leaves=6,
)
ANSWERS = st.builds(
    Answer,
    st.sampled_from([200, 200, 200, 201, 302, 400, 401, 403, 429, 500]),
    st.just({}),
    OBJECTS.map(lambda body: json.dumps(body).encode()) | st.binary(max_size=50),
)


class OddOrigin(HttpOrigin):
    """Answers every request alike."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("http://127.0.0.1:1", connections=1)
        self._always = answer

    async def get(self, path: str, headers: Mapping[str, str], *, timeout: timedelta) -> Answer:
        return self._always

    async def post(self, path: str, headers: Mapping[str, str], body: bytes, *, timeout: timedelta) -> Answer:
        return self._always

    async def upload(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        pieces: AsyncIterable[bytes],
        *,
        size: int,
        timeout: timedelta,
    ) -> Answer:
        return self._always


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("media")


async def tried(adapter: FacebookAdapter | InstagramAdapter, post: Post) -> None:
    steps: list[tuple[Coroutine[Any, Any, object], tuple[type, ...]]] = [
        (adapter.prepare(post), PREPARING),
        (adapter.check(post), PREPARING),
        (adapter.send(post), OUTCOMES),
        (adapter.look(post), FINDINGS),
        (adapter.look(replace(post, follows="1_2")), FINDINGS),
        (adapter.send(replace(post, follows="1_2")), OUTCOMES),
    ]
    for step, kinds in steps:
        assert isinstance(await step, kinds)
    with suppress(CredentialsRefused, ProviderDown):
        await adapter.verify("acme", post.external_account_id, Credentials(access_token=post.access_token), {})


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(answer=ANSWERS, handle=st.sampled_from(["", "text", '{"video":"7"}', '{"photos":["1"]}', '{"photos":[1,{}]}']))
def test_a_page_that_answers_anything_is_understood_as_something(folder: Path, answer: Answer, handle: str) -> None:
    media = MediaFolder(folder)
    adapter = FacebookAdapter(OddOrigin(answer), LIMITS, media=media)
    asyncio.run(tried(adapter, replace(PAGE, since=START, handle=handle, media=(media.add("a.jpg"),))))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(answer=ANSWERS, handle=st.sampled_from(["", "text", '{"container":"1"}', '{"children":["1","2"]}']))
def test_instagram_that_answers_anything_is_understood_as_something(folder: Path, answer: Answer, handle: str) -> None:
    media = MediaFolder(folder)
    adapter = InstagramAdapter(OddOrigin(answer), LIMITS, media=media, clock=FrozenClock())
    two = (media.add("a.jpg"), media.add("b.jpg"))
    asyncio.run(tried(adapter, replace(FEED, since=START, handle=handle, media=two)))
