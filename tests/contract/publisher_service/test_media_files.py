"""A file exists while it is used, is the expected one, and takes no more than its organization's share."""

import asyncio
import hashlib
import stat
from asyncio import TaskGroup
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from publisher_service.adapters.media.fetcher import BATCH
from publisher_service.adapters.media.refusals import MediaChanged, MediaRefused, MediaUnavailable
from publisher_service.adapters.media.spool import Room, Spool, SpoolFile, SpoolFull
from publisher_service.adapters.outside.places import Places
from testkit.eventually import eventually
from tests.contract.publisher_service.media_rig import ROOM, left, media_rig
from tests.contract.publisher_service.scripted_server import Wire
from tests.unit.publisher_service.media_samples import picture

JPEG = picture("image/jpeg")
SHA256 = hashlib.sha256(JPEG).hexdigest()


@contextmanager
def unavailable(reason: str) -> Iterator[None]:
    with pytest.raises(MediaUnavailable) as raised:
        yield
    assert raised.value.reason == reason


async def test_a_file_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    async with media_rig(tmp_path) as rig:
        async with rig.files.open("acme", rig.serve("a", JPEG)) as file:
            assert file.path.read_bytes() == JPEG
            assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
            assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
            assert rig.room.free == ROOM - len(JPEG)
        assert left(tmp_path) == []
        await eventually(lambda: rig.room.free == ROOM)
    assert list(tmp_path.iterdir()) == []


async def test_a_file_is_read_in_pieces_and_parts(tmp_path: Path) -> None:
    content = JPEG + bytes(range(256)) * 4000
    async with media_rig(tmp_path) as rig, rig.files.open("acme", rig.serve("a", content)) as file:
        pieces = [piece async for piece in file.pieces()]
        assert b"".join(pieces) == content
        assert [len(piece) for piece in pieces[:-1]] == [BATCH] * (len(pieces) - 1)
        assert b"".join([piece async for piece in file.pieces(begin=500, end=300_000)]) == content[500:300_000]
        assert [piece async for piece in file.pieces(begin=len(content))] == []


async def test_only_the_expected_file_is_given_out(tmp_path: Path) -> None:
    async with media_rig(tmp_path) as rig:
        url = rig.serve("a", JPEG)
        async with rig.files.open("acme", url, expected_sha256=SHA256) as file:
            assert file.facts.sha256 == SHA256
        rig.serve("a", picture("image/jpeg", 41))
        with pytest.raises(MediaChanged) as changed:
            async with rig.files.open("acme", url, expected_sha256=SHA256):
                raise AssertionError("unreachable")
        assert (changed.value.reason, changed.value.problem.is_transient) == ("MEDIA_CHANGED", False)
        assert isinstance(changed.value, MediaRefused)
        assert left(tmp_path) == []


async def test_an_error_of_the_user_of_a_file_is_passed_on_and_the_file_deleted(tmp_path: Path) -> None:
    async with media_rig(tmp_path) as rig:
        for error in (OSError("disk"), TimeoutError("slow"), KeyError("defect")):
            with pytest.raises(type(error)):
                async with rig.files.open("acme", rig.serve("a", JPEG)):
                    raise error
        assert left(tmp_path) == []
        await eventually(lambda: rig.room.free == ROOM)


async def test_a_canceled_fetch_leaves_nothing_behind(tmp_path: Path) -> None:
    async def stalling(wire: Wire) -> None:
        wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n", JPEG, bytes(BATCH * 3))
        await wire.until_closed()

    async with media_rig(tmp_path) as rig:
        url = rig.say("a", stalling)
        for moment in (lambda: rig.server.connections > 0, lambda: rig.room.free < ROOM, lambda: bool(left(tmp_path))):
            async with TaskGroup() as group:
                fetching = group.create_task(rig.facts(url))
                await eventually(moment)
                fetching.cancel()
            await eventually(lambda: rig.room.free == ROOM and not left(tmp_path))
        for turns in range(40):
            async with TaskGroup() as group:
                fetching = group.create_task(rig.facts(url))
                for _ in range(turns):
                    await asyncio.sleep(0)
                fetching.cancel()
        await eventually(lambda: rig.room.free == ROOM and not left(tmp_path))
        await eventually(lambda: rig.server.ended == rig.server.connections)
        assert (await rig.facts(rig.serve("b", JPEG))).size == len(JPEG)


async def test_an_organization_that_fills_its_share_leaves_room_for_another(tmp_path: Path) -> None:
    content = JPEG + bytes(60_000)
    async with media_rig(tmp_path, room=Room(200_000, share=100_000)) as rig:
        url = rig.serve("a", content)
        async with rig.files.open("flood", url):
            with unavailable("SPOOL_FULL"):
                await rig.facts(url, "flood")
            assert (await rig.facts(url, "acme")).size == len(content)
            async with rig.files.open("acme", url):
                with unavailable("SPOOL_FULL"):
                    await rig.facts(rig.serve("b", content * 2), "third")
        await eventually(lambda: rig.room.free == 200_000)
        assert (await rig.facts(url, "flood")).size == len(content)
        assert left(tmp_path) == []


async def test_an_organization_that_fetches_much_holds_up_nobody_else(tmp_path: Path) -> None:
    async def hanging(wire: Wire) -> None:
        await wire.until_closed()

    async with media_rig(tmp_path, places=Places(4, share=2, waiting=5)) as rig, TaskGroup() as group:
        url = rig.say("hanging", hanging)
        flood = [group.create_task(rig.facts(url, "flood")) for _ in range(7)]
        await eventually(lambda: rig.server.connections == 2)
        with unavailable("TOO_BUSY"):
            await rig.facts(url, "flood")
        assert (await rig.facts(rig.serve("a", JPEG), "acme")).size == len(JPEG)
        assert rig.server.connections == 3
        for task in flood:
            task.cancel()


async def test_the_folder_of_a_process_that_is_gone_is_deleted(tmp_path: Path) -> None:
    gone = tmp_path / "postflow-media-gone"
    gone.mkdir()
    (gone / "file").write_bytes(JPEG)
    (tmp_path / "postflow-media-link").symlink_to(tmp_path / "other")
    (tmp_path / "other").mkdir()
    async with media_rig(tmp_path) as rig, rig.files.open("acme", rig.serve("a", JPEG)) as first:
        assert not gone.exists()
        async with media_rig(tmp_path) as another, another.files.open("acme", another.serve("a", JPEG)) as second:
            assert first.path.exists()
            assert second.path.parent != first.path.parent
    assert {each.name for each in tmp_path.iterdir()} == {"other", "postflow-media-link"}


async def test_a_disk_that_takes_nothing_is_a_transient_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    async with media_rig(tmp_path / "file") as rig:
        with unavailable("SPOOL_FULL"):
            await rig.facts(rig.serve("a", JPEG))
    assert rig.room.free == ROOM


async def test_a_file_that_is_made_after_its_deletion_is_not_made(tmp_path: Path) -> None:
    """A thread may come to it only when the task that wanted it is long canceled."""
    spool = Spool(Room(1, share=1), parent=tmp_path)
    file = SpoolFile(spool, "acme")
    file.delete()
    for work in (file.append(b"a"), file.read(0, 1)):
        with pytest.raises(SpoolFull):
            await work
    assert left(tmp_path) == []
    await spool.close()


async def test_a_process_that_fetches_nothing_makes_no_folder(tmp_path: Path) -> None:
    spool = Spool(Room(1, share=1), parent=tmp_path / "spool")
    await spool.close()
    assert list(tmp_path.iterdir()) == []


async def test_files_are_deleted_if_the_process_ends_while_they_are_used(tmp_path: Path) -> None:
    async with media_rig(tmp_path) as rig, rig.files.open("acme", rig.serve("a", JPEG)):
        await rig.files.close()
        assert list(tmp_path.iterdir()) == []
