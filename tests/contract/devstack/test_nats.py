import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import pytest
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from devstack.errors import FolderInUse, PortInUse
from devstack.servers.nats import EmbeddedNats
from testkit.eventually import eventually


@asynccontextmanager
async def _jetstream(server: EmbeddedNats) -> AsyncIterator[JetStreamContext]:
    client = await nats.connect(server.url, allow_reconnect=False)
    try:
        yield client.jetstream()
    finally:
        await client.close()


async def _store_one(server: EmbeddedNats) -> None:
    async with _jetstream(server) as stream:
        await stream.add_stream(name="KEPT", subjects=["kept.>"])
        await stream.publish("kept.one", b"yes")


async def _stored(server: EmbeddedNats) -> bytes | None:
    async with _jetstream(server) as stream:
        return (await stream.get_last_msg("KEPT", "kept.one")).data


async def test_messages_survive_an_orderly_restart_on_the_same_port(fresh_nats: EmbeddedNats) -> None:
    await _store_one(fresh_nats)
    url = fresh_nats.url

    await fresh_nats.restart()

    assert fresh_nats.url == url
    assert await _stored(fresh_nats) == b"yes"


async def test_messages_survive_a_kill(fresh_nats: EmbeddedNats) -> None:
    await _store_one(fresh_nats)

    await fresh_nats.kill()
    assert not fresh_nats.running
    await fresh_nats.start()

    assert await _stored(fresh_nats) == b"yes"


async def test_a_new_server_object_finds_the_store(tmp_path: Path) -> None:
    async with EmbeddedNats(tmp_path / "nats") as first:
        await _store_one(first)
    async with EmbeddedNats(tmp_path / "nats") as second:
        assert await _stored(second) == b"yes"


async def test_wiping_forgets_every_stream(fresh_nats: EmbeddedNats) -> None:
    await _store_one(fresh_nats)

    await fresh_nats.stop()
    await fresh_nats.wipe()
    await fresh_nats.start()

    with pytest.raises(NotFoundError):
        await _stored(fresh_nats)


async def test_it_serves_jetstream_when_it_says_that_it_has_started(nats_server: EmbeddedNats) -> None:
    async with _jetstream(nats_server) as stream:
        assert (await stream.account_info()).limits.max_storage != 0


async def test_a_server_that_syncs_always_starts_and_keeps_messages(tmp_path: Path) -> None:
    async with EmbeddedNats(tmp_path / "nats", sync_always=True) as server:
        await _store_one(server)
        assert "always" in (tmp_path / "nats" / "server.conf").read_text()


async def test_two_servers_never_share_a_folder(fresh_nats: EmbeddedNats, tmp_path: Path) -> None:
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
        await EmbeddedNats(tmp_path / "nats").start()


async def test_a_port_in_use_is_named(nats_server: EmbeddedNats, tmp_path: Path) -> None:
    other = EmbeddedNats(tmp_path / "nats", port=nats_server.port)
    with pytest.raises(PortInUse, match=f"port {nats_server.port} \\(NATS\\)"):
        await other.start()
    assert not other.running


async def test_a_server_left_running_by_a_killed_run_is_taken_over_without_loss(tmp_path: Path) -> None:
    first = EmbeddedNats(tmp_path / "nats")
    await first.start()
    await _store_one(first)
    first._lock.release()  # as the kernel does when the holder is killed

    async with EmbeddedNats(tmp_path / "nats") as second:
        await eventually(lambda: not first.running)
        assert await _stored(second) == b"yes"


async def test_waiting_for_the_server_ends_with_its_death(fresh_nats: EmbeddedNats) -> None:
    os.kill(fresh_nats.pid, signal.SIGKILL)
    await fresh_nats.wait()
    assert not fresh_nats.running
