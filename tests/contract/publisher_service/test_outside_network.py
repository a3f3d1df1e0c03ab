"""A connection leads to an address that was checked, or is not made."""

import asyncio
import ssl
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from devstack.networks.webhook_receiver import SECRET
from publisher_service.adapters.outside.network import Outside, abort
from publisher_service.adapters.outside.refusals import AddressReason, AddressRefused, Unreachable
from publisher_service.adapters.outside.urls import HostPort
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits
from publisher_service.adapters.providers.smtp import SmtpAdapter
from publisher_service.adapters.providers.webhook import WebhookAdapter
from publisher_service.domain.credentials import Credentials
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scripted_server import ScriptedServer, Wire, scripted

LONG, SHORT = timedelta(seconds=20), timedelta(milliseconds=200)
TLS = tuple[ssl.SSLContext, ssl.SSLContext]


class Dns:
    """Answers one list of addresses after another; the last again and again."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = answers
        self.asked: list[HostPort] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


async def greet(wire: Wire) -> None:
    wire.say(b"hello")
    await wire.until_closed()


async def connected(outside: Outside, host: str, port: int, tls: ssl.SSLContext | None = None) -> bytes:
    reader, writer = await outside.connect("acme", host, port, tls=tls, timeout=LONG)
    try:
        return await reader.readexactly(5)
    finally:
        abort(writer)


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        ["93.184.216.34", "127.0.0.1"],
        ["127.0.0.1", "93.184.216.34"],
        ["93.184.216.34"] * 9 + ["10.0.0.1"],
        ["169.254.169.254"],
        ["::1"],
        ["2606:4700::1111", "64:ff9b::a9fe:a9fe"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%eth0"],
        ["nonsense"],
    ],
    ids=lambda answer: " ".join(answer)[-40:],
)
async def test_a_name_with_any_special_address_is_refused(answer: list[str]) -> None:
    async with scripted(greet) as server:
        with pytest.raises(AddressRefused) as refused:
            await connected(Outside(resolve=Dns(answer)), "rebound.example.com", server.port)
        assert refused.value.reason is AddressReason.URL_PRIVATE
        assert server.connections == 0


async def test_the_checked_address_is_connected_to_though_dns_changes() -> None:
    """The second answer would be refused, and the connection must not go there either."""
    async with scripted(greet) as server:
        dns = Dns(["192.88.98.1"], ["127.0.0.1"])
        with pytest.raises(Unreachable):
            await Outside(resolve=dns).connect("acme", "rebound.example.com", server.port, tls=None, timeout=SHORT)
        assert (server.connections, len(dns.asked)) == (0, 1)


async def test_a_name_is_resolved_once_and_that_address_used() -> None:
    async with scripted(greet) as server:
        dns = Dns(["127.0.0.1"], ["192.88.98.1"])
        outside = Outside(resolve=dns, private_hosts={("files.test", server.port)})
        assert await connected(outside, "Files.Test", server.port) == b"hello"
        assert (server.connections, dns.asked) == (1, [("files.test", server.port)])


async def test_a_public_name_is_asked_for_without_search_domains() -> None:
    dns = Dns(["10.0.0.1"])
    with pytest.raises(AddressRefused):
        await connected(Outside(resolve=dns), "files.example.com", 443)
    assert dns.asked == [("files.example.com.", 443)]


async def test_a_private_host_is_called_at_its_port_alone() -> None:
    async with scripted(greet) as server:
        outside = Outside(private_hosts={("127.0.0.1", server.port), ("localhost", server.port)})
        assert await connected(outside, "127.0.0.1", server.port) == b"hello"
        assert await connected(outside, "localhost", server.port) == b"hello"
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(AddressRefused):
                await connected(outside, host, server.port + 1)


@pytest.mark.parametrize("variable", ["http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"])
async def test_the_proxy_of_the_environment_is_ignored(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted(greet) as server, scripted(greet) as proxy:
        monkeypatch.setenv(variable, proxy.url)
        assert await connected(Outside(private_hosts={("127.0.0.1", server.port)}), "127.0.0.1", server.port)
        assert (server.connections, proxy.connections) == (1, 0)


async def test_the_next_address_is_tried_if_one_refuses() -> None:
    async with scripted(greet) as server:
        dns = Dns(["::1", "127.0.0.2", "127.0.0.1"])
        outside = Outside(resolve=dns, private_hosts={("files.test", server.port)})
        assert await connected(outside, "files.test", server.port) == b"hello"


async def test_tls_asks_for_the_name_and_verifies_it(certificate: TLS) -> None:
    """The connection goes to an address; the certificate is that of the name."""
    serving, trusting = certificate
    names: list[str] = []
    serving.sni_callback = lambda _object, name, _context: names.append(str(name))
    try:
        async with scripted(greet, tls=serving) as server:
            hosts = {("localhost", server.port), ("other.test", server.port)}
            outside = Outside(resolve=Dns(["127.0.0.1"]), private_hosts=hosts)
            assert await connected(outside, "localhost", server.port, trusting) == b"hello"
            with pytest.raises(Unreachable) as failed:
                await connected(outside, "other.test", server.port, trusting)
            assert (failed.value.reason, names) == ("TLS_FAILED", ["localhost", "other.test"])
            with pytest.raises(Unreachable, match="TLS_FAILED"):
                await connected(outside, "localhost", server.port, outside.tls)
    finally:
        serving.sni_callback = None


async def test_a_host_that_refuses_or_does_not_exist_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="CONNECT_FAILED"):
        await connected(Outside(private_hosts={("127.0.0.1", 1)}), "127.0.0.1", 1)
    for answer in (OSError("no such host"), UnicodeError("no name")):
        with pytest.raises(Unreachable, match="DNS_FAILED"):
            await connected(Outside(resolve=failing(answer)), "files.example.com", 443)
    with pytest.raises(Unreachable, match="DNS_FAILED"):
        await connected(Outside(resolve=Dns([])), "files.example.com", 443)


def failing(error: Exception) -> Dns:
    class Failing(Dns):
        def __call__(self, host: str, port: int) -> Sequence[str]:
            raise error

    return Failing()


async def test_a_server_that_never_speaks_tls_is_given_up(certificate: TLS) -> None:
    async with scripted(Wire.until_closed) as server:
        outside = Outside(private_hosts={("localhost", server.port)})
        with pytest.raises(Unreachable, match="CONNECT_TIMEOUT"):
            await outside.connect("acme", "localhost", server.port, tls=certificate[1], timeout=SHORT)
        await eventually(lambda: ended(server))


def ended(server: ScriptedServer) -> bool:
    return server.ended == server.connections == 1


async def test_names_that_hang_hold_up_only_their_organization() -> None:
    released, asked = Event(), []

    def hanging(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        if host.startswith("hanging"):
            released.wait(60)
        return ["10.0.0.1"]

    outside = Outside(resolve=hanging)
    try:
        for _ in range(2):
            async with asyncio.TaskGroup() as group:
                for number in range(8):
                    group.create_task(given_up(outside, f"hanging-{number}.example.com"))
        # They are given up, but their threads go on: they keep their places.
        assert len(asked) == 4
        with pytest.raises(AddressRefused):
            await outside.connect("other", "quick.example.com", 443, tls=None, timeout=LONG)
    finally:
        released.set()
    with pytest.raises(AddressRefused):
        await outside.connect("acme", "quick.example.com", 443, tls=None, timeout=LONG)


async def given_up(outside: Outside, host: str) -> None:
    with pytest.raises(Unreachable, match="DNS_FAILED"):
        await outside.connect("acme", host, 443, tls=None, timeout=SHORT)


@pytest.mark.parametrize("provider", ["webhook", "smtp"])
async def test_accounts_whose_names_hang_hold_up_only_their_organization(provider: str, tmp_path: Path) -> None:
    """A person who connects an account waits for its verification."""
    released = Event()

    def hanging(host: str, _port: int) -> Sequence[str]:
        if host.startswith("hanging"):
            released.wait(60)
        return ["10.0.0.1"]

    outside, limits = Outside(resolve=hanging), Limits(request_timeout=LONG)

    async def verify(organization_id: str, host: str) -> None:
        if provider == "webhook":
            adapter = WebhookAdapter(outside, limits, clock=SystemClock())
            await adapter.verify(organization_id, "hook", Credentials(access_token=SECRET), {"url": f"https://{host}/"})
        else:
            mail = SmtpAdapter(outside, limits, media=MediaFolder(tmp_path))
            settings = {"host": host, "port": "587", "security": "starttls"}
            await mail.verify(organization_id, "ada@example.com", Credentials(access_token="p"), settings)

    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(verify("acme", f"hanging-{number}.example.com")) for number in range(104)]
        try:
            await asyncio.sleep(0)
            with pytest.raises(CredentialsRefused, match="not public"):
                await verify("other", "quick.example.com")
        finally:
            for each in waiting:
                each.cancel()
            released.set()
