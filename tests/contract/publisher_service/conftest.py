import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from publisher_service.adapters.providers.adapter import Limits
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from tests.contract.publisher_service.sandbox import LIMITS, AdapterAt


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Runs the tests of clients on uvloop too, as the services do: its transports are not quite the same."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    clients = ("test_http_origin", "test_media", "test_outside", "test_smtp_adapter_session")
    is_client = item.path.stem.startswith(clients)
    return loops | {"uvloop": uvloop.new_event_loop} if is_client else loops


@pytest.fixture
async def adapter_at() -> AsyncIterator[AdapterAt]:
    """Makes adapters of the sandbox for other servers, and closes their connections."""
    origins: list[HttpOrigin] = []

    def adapter(url: str, limits: Limits = LIMITS) -> SandboxAdapter:
        origins.append(HttpOrigin(url, connections=8))
        return SandboxAdapter(origins[-1], limits)

    yield adapter
    for origin in origins:
        await origin.close()


@pytest.fixture
def control(sandbox: Sandbox) -> SandboxClient:
    return SandboxClient(sandbox.url, sandbox.path)


@pytest.fixture
def provider(adapter_at: AdapterAt, sandbox: Sandbox) -> SandboxAdapter:
    return adapter_at(f"{sandbox.url}/")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Makes a certificate of `localhost`; returns the context of its server, and that of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    return serving, ssl.create_default_context(cafile=str(file))
