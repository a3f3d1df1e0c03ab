"""A session with a mail server: TLS before a password, and a mail in pieces."""

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, ProviderDown
from publisher_service.adapters.providers.provider import Provider
from publisher_service.adapters.providers.smtp import SmtpAdapter
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Accepted, Ambiguous, NotSent, Outcome, RateLimited, Rejected
from servicekit.clock import SystemClock
from testkit.certificates import certificate_for
from testkit.eventually import eventually
from testkit.smtp_server import At
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scripted_server import ScriptedServer, Wire, scripted
from tests.contract.publisher_service.smtp_scene import FROM, PASSWORD, PATIENT, SHORT, at_port, smtp_scene


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_mail_and_password_go_through_tls(tmp_path: Path, security: str) -> None:
    async with smtp_scene(tmp_path, security=security) as scene:
        await scene.adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), scene.post.settings)
        assert isinstance(await scene.adapter.send(scene.post), Accepted)
        (kept,) = scene.server.kept
        assert (kept.is_encrypted, kept.user) == (True, FROM)


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_certificate_of_another_host_gets_no_password(tmp_path: Path, security: str) -> None:
    async with smtp_scene(tmp_path, security=security) as scene:
        port = scene.server.port
        outside = Outside(private_hosts={("other.test", port)}, resolve=lambda *_: ["127.0.0.1"], tls=scene.outside.tls)
        adapter = SmtpAdapter(outside, PATIENT, media=scene.media)
        post = replace(scene.post, settings=scene.settings(host="other.test"))
        assert isinstance(await adapter.send(post), NotSent)
        with pytest.raises(ProviderDown, match="certificate"):
            await adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), post.settings)
        assert not any("AUTH" in line for line in scene.server.heard)


async def test_a_server_without_starttls_gets_no_password(tmp_path: Path) -> None:
    async with smtp_scene(tmp_path) as scene:
        post = replace(scene.post, settings=scene.settings(security="starttls"))
        assert isinstance(await scene.adapter.send(post), RateLimited)
        with pytest.raises(CredentialsRefused, match="STARTTLS"):
            await scene.adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), post.settings)
        assert scene.server.heard
        assert not any("AUTH" in line for line in scene.server.heard)


@pytest.mark.parametrize("fault", [{}, {"hang": True}, {"reply": "454 4.7.0 no TLS now"}, {"reply": "501 5.5.4 no"}])
async def test_starttls_that_fails_sends_nothing(tmp_path: Path, fault: dict[str, str]) -> None:
    async with smtp_scene(tmp_path, security="starttls") as scene:
        scene.server.fail(At.STARTTLS, **fault)  # type: ignore[arg-type]
        assert isinstance(await scene.hurried.send(scene.post), NotSent | RateLimited)
        assert not any("AUTH" in line for line in scene.server.heard)


async def test_what_was_said_before_tls_is_forgotten(tmp_path: Path) -> None:
    """Somebody on the way offers AUTH in plain text behind the answer to STARTTLS; the server does not."""
    made = certificate_for("localhost", tmp_path)
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 hello\r\n")
        await reader.readline()
        writer.write(b"250-localhost\r\n250 STARTTLS\r\n")
        await reader.readline()
        writer.write(b"220 go on\r\n250-injected\r\n250 AUTH PLAIN LOGIN\r\n")
        await writer.start_tls(made.server)
        heard.append(await reader.readline())
        writer.write(b"250 localhost\r\n")
        heard.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        trusting = ssl.create_default_context(cafile=str(made.file))
        outside = Outside(private_hosts={("localhost", port)}, resolve=lambda *_: ["127.0.0.1"], tls=trusting)
        adapter = SmtpAdapter(outside, PATIENT, media=MediaFolder(tmp_path))
        settings = {"host": "localhost", "port": str(port), "security": "starttls"}
        with pytest.raises(CredentialsRefused, match="neither AUTH"):
            await adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), settings)
        await eventually(lambda: heard == [b"EHLO example.com\r\n", b""], within=5)


async def test_attachments_arrive_as_they_are(tmp_path: Path) -> None:
    async with smtp_scene(tmp_path) as scene:
        data = [bytes(range(256)) * 4000, b".\r\n.\r\n", b""]
        media = tuple(scene.media.add(f"plan {n}.pdf", each) for n, each in enumerate(data))
        assert isinstance(await scene.adapter.send(replace(scene.post, media=media)), Accepted)
        (kept,) = scene.server.kept
        parts = list(kept.message.iter_attachments())
        assert [part.get_content() for part in parts] == data
        assert [part.get_content_type() for part in parts] == 3 * ["application/pdf"]
        assert [part.get_filename() for part in parts] == ["plan-0.pdf", "plan-1.pdf", "plan-2.pdf"]
        body = kept.message.get_body()
        assert body is not None
        assert body.get_content().replace("\r\n", "\n") == "Dear Grace,\n.\nyours, Ada\n"
        (announced,) = [line for line in scene.server.heard if line.startswith("MAIL")]
        assert announced == f"MAIL FROM:<{FROM}> SIZE={len(kept.data)}"


async def test_a_large_attachment_goes_in_pieces(tmp_path: Path) -> None:
    async with smtp_scene(tmp_path) as scene:
        data = hashlib.sha256(b"x").digest() * 300_000
        media = (scene.media.add("large.mp4", data),)
        assert isinstance(await scene.adapter.send(replace(scene.post, media=media)), Accepted)
        (kept,) = scene.server.kept
        (part,) = kept.message.iter_attachments()
        assert part.get_content() == data


@asynccontextmanager
async def session_that(ends: "Ends") -> AsyncIterator[ScriptedServer]:
    """Opens a server that takes a mail up to its body, and then behaves so."""

    async def serve(wire: Wire) -> None:
        wire.say(b"220 hello\r\n")
        for answer in (b"250-hello\r\n250 AUTH PLAIN\r\n", b"235 ok\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"):
            await wire.line()
            wire.say(answer)
        await ends(wire)

    async with scripted(serve) as server:
        yield server


class Ends(Protocol):
    async def __call__(self, wire: Wire) -> None: ...


class Closes:
    async def __call__(self, wire: Wire) -> None:
        await wire.line()


class RefusesAndCloses:
    async def __call__(self, wire: Wire) -> None:
        await wire.line()
        wire.say(b"552 5.3.4 too large\r\n")
        await wire.until_closed()


class Stalls:
    async def __call__(self, wire: Wire) -> None:
        await asyncio.Event().wait()


async def sent_to(ends: Ends, folder: Path, post: Post, size: int, limits: Limits) -> Outcome:
    async with session_that(ends) as server:
        outside = Outside(private_hosts={("localhost", server.port)}, resolve=lambda *_: ["127.0.0.1"])
        media = MediaFolder(folder)
        adapter = SmtpAdapter(outside, limits, media=media)
        attached = (media.add("large.mp4", bytes(size)),)
        return await adapter.send(replace(at_port(post, server.port), media=attached))


@pytest.mark.parametrize(
    ("ends", "size", "expected"),
    [(Closes(), 20_000_000, NotSent), (Stalls(), 20_000_000, NotSent), (RefusesAndCloses(), 1000, Rejected)],
    ids=["closes", "stalls", "refuses"],
)
async def test_a_mail_that_is_not_handed_over_whole_was_not_sent(
    tmp_path: Path, ends: Ends, size: int, expected: type[Outcome]
) -> None:
    async with smtp_scene(tmp_path) as scene:
        assert isinstance(await sent_to(ends, tmp_path, scene.post, size, SHORT), expected)


async def test_a_stall_behind_the_dot_is_ambiguous(tmp_path: Path) -> None:
    async with smtp_scene(tmp_path) as scene:
        assert isinstance(await sent_to(Stalls(), tmp_path, scene.post, 1000, SHORT), Ambiguous)


@pytest.mark.parametrize("at", [At.CONNECT, At.BODY, At.QUIT])
async def test_a_send_ends_before_its_guard_ends_it(tmp_path: Path, at: At) -> None:
    async with smtp_scene(tmp_path) as scene:
        scene.server.fail(at, hang=True)
        seen = await Provider(scene.hurried, SystemClock()).send(scene.post)
        assert isinstance(seen, {At.CONNECT: NotSent, At.BODY: Ambiguous, At.QUIT: Accepted}[at])
        assert getattr(seen, "reason", "") != "ADAPTER_FAILED"
