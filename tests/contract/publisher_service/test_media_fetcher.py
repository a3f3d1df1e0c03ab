"""A file of a user is fetched within bounds, or refused with a reason; nothing shows the query of its URL."""

import asyncio
import gzip
import hashlib
import logging
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from channels.validation import MediaKind
from publisher_service.adapters.media.fetcher import BATCH, Pace
from publisher_service.adapters.media.refusals import MediaTrouble
from publisher_service.domain.media import MediaFacts
from testkit.eventually import eventually
from tests.contract.publisher_service.media_rig import CANARY, CAPS, LONG, ROOM, SHORT, MediaRig, left, media_rig
from tests.contract.publisher_service.scripted_server import Wire, scripted
from tests.unit.publisher_service.media_samples import FILM, PDF, SECONDS, WEBM, moving, picture

JPEG = picture("image/jpeg")
TYPED = "Content-Type: image/jpeg; charset=binary\r\n"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[MediaRig]:
    names = {"private.example.com": ["10.0.0.1"], "mixed.example.com": ["93.184.216.34", "127.0.0.1"]}
    async with media_rig(tmp_path, names=names) as rig:
        yield rig
        await eventually(lambda: rig.room.free == ROOM)
        assert left(tmp_path) == []


async def refusal(rig: MediaRig, url: str) -> str:
    with pytest.raises(MediaTrouble) as refused:
        await rig.facts(url)
    assert CANARY not in f"{refused.value} {refused.value.problem!r}"
    return f"{type(refused.value).__name__} {refused.value.reason}"


async def test_the_facts_are_those_of_the_bytes(rig: MediaRig) -> None:
    assert await rig.facts(rig.serve("a.png", JPEG, head=TYPED)) == MediaFacts(
        kind=MediaKind.IMAGE,
        content_type="image/jpeg",
        size=len(JPEG),
        sha256=hashlib.sha256(JPEG).hexdigest(),
        width=40,
        height=30,
    )
    film = await rig.facts(rig.serve("film", FILM, head="Content-Type: video/mp4\r\n"))
    assert (film.kind, film.width, film.duration, film.is_mislabeled) == (MediaKind.VIDEO, 640, SECONDS, False)
    pages = await rig.facts(rig.serve("pages", PDF, head="Content-Type: application/pdf\r\n"))
    assert (pages.kind, pages.page_count, pages.width) == (MediaKind.DOCUMENT, 2, 0)
    assert (await rig.facts(rig.serve("moving", moving("image/gif")))).is_animated
    assert (await rig.facts(rig.serve("webm", WEBM))).width == 0


@pytest.mark.parametrize("head", ["", "Content-Type: text/html\r\n", "Content-Type: \xff\r\n"], ids=ascii)
async def test_a_type_that_is_declared_wrongly_is_only_noted(rig: MediaRig, head: str) -> None:
    facts = await rig.facts(rig.serve("a", JPEG, head=head))
    assert (facts.content_type, facts.is_mislabeled) == ("image/jpeg", True)


@pytest.mark.parametrize("content", [b"<!doctype html><img src=x>", b"<svg/>", b"MZ" + JPEG, b"PK\x03\x04", b"x"])
async def test_what_is_no_medium_is_refused_no_matter_what_is_declared(rig: MediaRig, content: bytes) -> None:
    assert await refusal(rig, rig.serve("a.jpg", content, head=TYPED)) == "MediaRefused MEDIA_TYPE_UNKNOWN"


async def test_an_empty_or_broken_file_is_refused(rig: MediaRig) -> None:
    assert await refusal(rig, rig.serve("empty", b"", head=TYPED)) == "MediaRefused MEDIA_EMPTY"
    assert await refusal(rig, rig.serve("cut", JPEG[:20], head=TYPED)) == "MediaRefused MEDIA_UNREADABLE"
    assert await refusal(rig, rig.serve("film", FILM[:-1])) == "MediaRefused MEDIA_UNREADABLE"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((code, "MediaRefused MEDIA_NOT_SERVED") for code in (201, 204, 206, 304, 400, 401, 403, 404, 410, 451)),
        *((code, "MediaUnavailable SERVER_BUSY") for code in (408, 425, 429, 500, 502, 503, 504, 599)),
    ],
)
async def test_a_status_is_definite_or_transient(rig: MediaRig, status: int, expected: str) -> None:
    content = b"" if status in {204, 304} else JPEG
    assert await refusal(rig, rig.serve("a", content, status=f"{status} Status")) == expected


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
async def test_three_redirects_are_followed_without_cookies(rig: MediaRig, status: str) -> None:
    rig.serve("last", JPEG)
    rig.redirect("third", f"last?{CANARY}", status=status)
    rig.redirect("second", f"{rig.server.url}/third", status=status)
    first = rig.redirect("first", "/second", status=status, head="Set-Cookie: a=b\r\n")
    assert (await rig.facts(first)).width == 40
    heads = b"".join(rig.server.requests).lower()
    assert len(rig.server.requests) == 4
    assert not any(name in heads for name in (b"cookie", b"authorization", b"referer"))
    before = rig.redirect("before", "/first", status=status)
    assert await refusal(rig, before) == "MediaRefused MEDIA_REDIRECTED"


async def test_a_redirect_loop_ends(rig: MediaRig) -> None:
    assert await refusal(rig, rig.redirect("loop", "/loop")) == "MediaRefused MEDIA_REDIRECTED"
    assert len(rig.server.requests) == 4
    assert await refusal(rig, rig.redirect("nowhere", "")) == "MediaRefused MEDIA_REDIRECTED"


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data/", "URL_NOT_HTTPS"),
        ("https://169.254.169.254/latest/meta-data/", "URL_IP_ADDRESS"),
        ("https://[::ffff:169.254.169.254]/", "URL_IP_ADDRESS"),
        ("https://localhost/", "URL_PRIVATE"),
        ("https://private.example.com/", "URL_PRIVATE"),
        ("https://mixed.example.com/", "URL_PRIVATE"),
        ("https://private.example.com:8443/", "URL_HAS_PORT"),
        ("https://user:password@private.example.com/", "URL_HAS_CREDENTIALS"),
        ("file:///etc/passwd", "URL_NOT_HTTPS"),
        ("\xff", "MEDIA_REDIRECTED"),
    ],
    ids=ascii,
)
async def test_a_redirect_to_a_private_place_is_refused(rig: MediaRig, to: str, reason: str) -> None:
    async def answer(wire: Wire) -> None:
        wire.say(b"HTTP/1.1 302 Found\r\nLocation: ", to.encode("latin-1"), b"\r\nContent-Length: 0\r\n\r\n")

    assert await refusal(rig, rig.say("a", answer)) == f"MediaRefused {reason}"


async def test_a_redirect_to_another_local_server_does_not_reach_it(rig: MediaRig) -> None:
    async with scripted(Wire.until_closed) as internal:
        assert await refusal(rig, rig.redirect("a", internal.url)) == "MediaRefused URL_NOT_HTTPS"
        assert internal.connections == 0


async def test_a_compressed_answer_is_refused_unread(rig: MediaRig) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    for coding in ("gzip", "br", "gzip, gzip", "deflate"):
        url = rig.serve("bomb", bomb, head=f"{TYPED}Content-Encoding: {coding}\r\n")
        assert await refusal(rig, url) == "MediaRefused MEDIA_ENCODED"
    assert b"\r\nAccept-Encoding: identity\r\n" in rig.server.requests[0]
    assert (await rig.facts(rig.serve("plain", JPEG, head="Content-Encoding: Identity\r\n"))).width == 40


async def test_a_false_length_is_not_believed(rig: MediaRig) -> None:
    for length, reason in (
        (len(JPEG) + 1, "MediaUnavailable CONNECTION_LOST"),
        (20, "MediaRefused MEDIA_UNREADABLE"),
        (10**12, "MediaRefused MEDIA_TOO_LARGE"),
        (10**40, "MediaUnavailable UNREADABLE"),
        (-1, "MediaUnavailable UNREADABLE"),
    ):
        url = rig.serve("a", JPEG, head=f"Content-Length: {length}\r\n")
        assert (await refusal(rig, url)) == reason


async def test_an_endless_body_ends_at_the_cap_of_its_kind(tmp_path: Path) -> None:
    written = 0

    async def endless(wire: Wire) -> None:
        nonlocal written
        wire.say(b"HTTP/1.1 200 OK\r\n\r\n", JPEG)
        while True:
            await wire.write(bytes(100_000))
            written += 100_000

    async with media_rig(tmp_path, caps=replace(CAPS, image=1_000_000)) as rig:
        assert await refusal(rig, rig.say("a", endless)) == "MediaRefused MEDIA_TOO_LARGE"
        await eventually(lambda: rig.server.ended == 1 and rig.room.free == ROOM)
        assert written < 30_000_000  # the buffers of the sockets are larger than the cap
        assert (await rig.facts(rig.serve("film", FILM + bytes(2_000_000)))).size > 2_000_000
        assert left(tmp_path) == []


async def test_a_slow_drip_is_given_up(tmp_path: Path) -> None:
    async def drip(wire: Wire) -> None:
        wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        for byte in JPEG:
            await wire.write(bytes([byte]))
            await asyncio.sleep(0.005)

    for pace in (Pace(in_all=LONG, batch=SHORT), Pace(in_all=SHORT)):
        async with media_rig(tmp_path, pace=pace) as rig:
            assert await refusal(rig, rig.say("a", drip)) == "MediaUnavailable TOO_SLOW"
            await eventually(lambda ended=rig: ended.server.ended == 1)  # type: ignore[misc]


async def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    async with media_rig(tmp_path, pace=Pace(in_all=LONG, answer=SHORT)) as rig:
        assert await refusal(rig, rig.say("a", Wire.until_closed)) == "MediaUnavailable TOO_SLOW"


async def test_a_steady_server_may_take_longer_than_a_batch_may(tmp_path: Path) -> None:
    async def steady(wire: Wire) -> None:
        wire.say(b"HTTP/1.1 200 OK\r\n\r\n", JPEG)
        for _ in range(6):
            await wire.write(bytes(BATCH))
            await asyncio.sleep(0.4)

    async with media_rig(tmp_path, pace=Pace(in_all=LONG, batch=timedelta(seconds=2))) as rig:
        assert (await rig.facts(rig.say("a", steady))).size == len(JPEG) + 6 * BATCH


@pytest.mark.parametrize("piece", [1_000_000, 1000])
async def test_a_large_file_is_never_in_memory(rig: MediaRig, piece: int) -> None:
    """The largest buffers are a batch that is being written, one that is being filled, and those of the connection."""

    async def large(wire: Wire) -> None:
        wire.say(b"HTTP/1.1 200 OK\r\n\r\n", JPEG)
        for _ in range(30_000_000 // piece):
            await wire.write(bytes(piece))

    url = rig.say("a", large)
    await rig.facts(rig.serve("small", JPEG))
    tracemalloc.start()
    try:
        async with rig.files.open("acme", url) as file:
            sizes = [len(piece) async for piece in file.pieces()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (sum(sizes), max(sizes)) == (30_000_000 + len(JPEG), BATCH)
    # The server of the test has its buffers in this process as well.
    assert peak < 3 * piece + 6 * BATCH


async def test_the_query_of_a_url_is_in_no_log_and_no_error(rig: MediaRig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await rig.facts(rig.serve("good", JPEG))
    for url in (
        rig.serve("html", b"<html>"),
        rig.serve("gone", b"", status="404 No"),
        rig.serve("busy", b"", status="503 No"),
        rig.serve("broken", b"", head="Content-Length: 9\r\n"),
        rig.serve("nonsense", b"", status=""),
        rig.redirect("away", f"http://127.0.0.1/?{CANARY}"),
        rig.redirect("odd", f"//[{CANARY}"),
        f"https://private.example.com/a?{CANARY}",
        f"http://example.com/?{CANARY}",
        f"https://example.com/{'a' * 3000}?{CANARY}",
        f"https://a:{CANARY}@example.com/",
        f"nonsense {CANARY}",
    ):
        assert await refusal(rig, url)
    assert CANARY not in caplog.text
