"""The facts of a file are answered without fetching it, for a while; other files are fetched once for all callers."""

import asyncio
from asyncio import TaskGroup
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from publisher_service.adapters.outside.places import Places
from publisher_service.application.drop_old_rows import DropOldRows
from publisher_service.application.inspect_media import InspectMedia
from publisher_service.domain.media import Inspected, MediaFacts, MediaProblem
from servicekit.pg.database import Database
from testkit.database_clocks import FrozenDatabaseClock
from testkit.eventually import eventually
from tests.contract.publisher_service.media_rig import CANARY, MediaRig, left, media_rig
from tests.contract.publisher_service.scripted_server import Wire
from tests.unit.publisher_service.media_samples import FILM, PDF, SECONDS, picture
from tests.usecase.publisher_service.replica import Replica

LIFE, LONG, SHORT = timedelta(minutes=15), timedelta(seconds=20), timedelta(milliseconds=100)
JPEG = picture("image/jpeg")


class Inspecting:
    def __init__(self, database: Database, rig: MediaRig) -> None:
        self.rig = rig
        self.clock = FrozenDatabaseClock()
        self.inspect = self.process(database)

    def process(self, database: Database) -> InspectMedia:
        return InspectMedia(database=database, clock=self.clock, files=self.rig.files, life=LIFE)

    async def __call__(self, *urls: str, organization_id: str = "acme", patience: timedelta = LONG) -> list[Inspected]:
        return await self.inspect(organization_id, urls, patience=patience)

    @property
    def fetched(self) -> int:
        return len(self.rig.server.requests)


@pytest.fixture
async def inspecting(replica: Replica, tmp_path: Path) -> AsyncIterator[Inspecting]:
    async with media_rig(tmp_path, places=Places(8, share=4, waiting=10)) as rig:
        inspecting = Inspecting(replica.database, rig)
        yield inspecting
        await inspecting.inspect.close()
        await eventually(lambda: left(tmp_path) == [])


def reason(inspected: Inspected) -> str:
    return inspected.reason if isinstance(inspected, MediaProblem) else ""


async def test_facts_are_kept_and_fetched_again_when_they_are_old(inspecting: Inspecting) -> None:
    urls = [inspecting.rig.serve(name, content) for name, content in {"a": JPEG, "b": FILM, "c": PDF}.items()]
    found = await inspecting(*urls)
    photo, film, pages = found
    assert isinstance(photo, MediaFacts)
    assert isinstance(film, MediaFacts)
    assert isinstance(pages, MediaFacts)
    assert (photo.width, film.duration, pages.page_count, inspecting.fetched) == (40, SECONDS, 2, 3)
    inspecting.clock.moment += LIFE - timedelta(seconds=1)
    assert await inspecting(*urls) == found
    assert inspecting.fetched == 3
    inspecting.rig.serve("a", picture("image/jpeg", 50))
    inspecting.clock.moment += timedelta(seconds=1)
    changed, *_ = await inspecting(*urls)
    assert isinstance(changed, MediaFacts)
    assert (changed.width, inspecting.fetched) == (50, 6)


async def test_a_url_that_is_named_twice_is_fetched_once(inspecting: Inspecting) -> None:
    url, other = inspecting.rig.serve("a", JPEG), inspecting.rig.serve("b", FILM)
    found = await inspecting(url, other, url)
    assert found[0] == found[2] != found[1]
    assert inspecting.fetched == 2
    assert await inspecting() == []


async def test_another_organization_learns_nothing_of_it(inspecting: Inspecting) -> None:
    url = inspecting.rig.serve("a", JPEG)
    await inspecting(url)
    await inspecting(url, organization_id="other")
    assert inspecting.fetched == 2


async def test_calls_at_one_time_share_a_fetch(inspecting: Inspecting) -> None:
    ready = asyncio.Event()

    async def slow(wire: Wire) -> None:
        await ready.wait()
        wire.say(b"HTTP/1.1 200 OK\r\n\r\n", JPEG)

    url = inspecting.rig.say("a", slow)
    async with TaskGroup() as group:
        calls = [group.create_task(inspecting(url)) for _ in range(20)]
        await eventually(lambda: inspecting.fetched == 1)
        calls[0].cancel()
        ready.set()
    found = [call.result()[0] for call in calls[1:]]
    assert len(set(found)) == 1
    assert reason(found[0]) == ""
    assert inspecting.fetched == 1


async def test_a_fetch_goes_on_when_its_caller_has_no_more_time(inspecting: Inspecting) -> None:
    ready = asyncio.Event()

    async def slow(wire: Wire) -> None:
        await ready.wait()
        wire.say(b"HTTP/1.1 200 OK\r\n\r\n", JPEG)

    slow_url, quick_url = inspecting.rig.say("a", slow), inspecting.rig.serve("b", FILM)
    pending, quick = await inspecting(slow_url, quick_url, patience=SHORT)
    assert (reason(pending), reason(quick)) == ("MEDIA_PENDING", "")
    assert isinstance(pending, MediaProblem)
    assert pending.is_transient
    ready.set()
    (found,) = await inspecting(slow_url)
    assert (reason(found), inspecting.fetched) == ("", 2)


async def test_a_refusal_is_a_result_and_is_forgotten_soon(inspecting: Inspecting) -> None:
    urls = [inspecting.rig.serve("a", b"<html>"), "http://example.com/", "https://10.0.0.1/", "nonsense \ud800"]
    expected = ["MEDIA_TYPE_UNKNOWN", "URL_NOT_HTTPS", "URL_IP_ADDRESS", "URL_MALFORMED"]
    assert list(map(reason, await inspecting(*urls))) == expected
    inspecting.rig.serve("a", JPEG)
    inspecting.clock.moment += timedelta(seconds=59)
    assert list(map(reason, await inspecting(*urls))) == expected
    inspecting.clock.moment += timedelta(seconds=1)
    assert list(map(reason, await inspecting(*urls))) == ["", *expected[1:]]
    assert inspecting.fetched == 2


async def test_a_transient_problem_is_not_kept(inspecting: Inspecting) -> None:
    url = inspecting.rig.serve("a", b"", status="503 Busy")
    (busy,) = await inspecting(url)
    inspecting.rig.serve("a", JPEG)
    (found,) = await inspecting(url)
    assert (reason(busy), reason(found)) == ("SERVER_BUSY", "")


async def test_an_organization_that_asks_for_too_much_is_refused_alone(inspecting: Inspecting) -> None:
    urls = [inspecting.rig.say(f"hanging-{number}", Wire.until_closed) for number in range(16)]
    found = await inspecting(*urls, patience=SHORT)
    assert sorted(map(reason, found)) == ["MEDIA_PENDING"] * 14 + ["TOO_BUSY"] * 2
    (other,) = await inspecting(inspecting.rig.serve("a", JPEG), organization_id="other")
    assert reason(other) == ""


async def test_the_query_of_a_url_is_not_stored(inspecting: Inspecting, replica: Replica) -> None:
    await inspecting(inspecting.rig.serve("a", JPEG), inspecting.rig.serve("b", b"<html>"))
    rows = await replica.rows("select media::text as line, shown_url from media order by shown_url")
    assert [row.shown_url.rpartition("/")[2] for row in rows] == ["a", "b"]
    assert not any(CANARY in row.line for row in rows)


async def test_an_older_fetch_does_not_replace_a_newer_one(inspecting: Inspecting, replica: Replica) -> None:
    url = inspecting.rig.serve("a", JPEG)
    await inspecting(url)
    await replica.write("update media set fetch_time = fetch_time + interval '1 hour', width = 99")
    slow = inspecting.process(replica.database)
    slow._life = timedelta(hours=-2)  # believes nothing
    await slow("acme", [url], patience=LONG)
    assert [row.width for row in await replica.rows("select width from media")] == [99]


async def test_a_kind_of_a_newer_release_is_fetched_again(inspecting: Inspecting, replica: Replica) -> None:
    url = inspecting.rig.serve("a", JPEG)
    found = await inspecting(url)
    await replica.write("update media set kind = 'HOLOGRAM'")
    assert await inspecting(url) == found
    assert inspecting.fetched == 2


async def test_facts_are_dropped_when_nobody_asked_for_a_week(inspecting: Inspecting, replica: Replica) -> None:
    urls = [inspecting.rig.serve(name, JPEG) for name in "ab"]
    await inspecting(*urls)
    drop = DropOldRows(replica.database, inspecting.clock)
    inspecting.clock.moment += timedelta(days=5)
    await inspecting(urls[0])
    inspecting.clock.moment += timedelta(days=2)
    assert not await drop()
    assert len(await replica.rows("select 1 from media")) == 2
    inspecting.clock.moment += timedelta(seconds=1)
    assert not await drop()
    assert [row.shown_url[-1] for row in await replica.rows("select shown_url from media")] == ["a"]


async def test_a_process_that_stops_ends_its_fetches(inspecting: Inspecting) -> None:
    url = inspecting.rig.say("a", Wire.until_closed)
    await inspecting(url, patience=SHORT)
    await inspecting.inspect.close()
    await eventually(lambda: inspecting.rig.server.ended == inspecting.rig.server.connections == 1)
