"""An adapter of mail servers at a server of the test kit, as its tests use it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import create_default_context

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.providers.adapter import Limits, Post
from publisher_service.adapters.providers.smtp import SmtpAdapter
from testkit.certificates import certificate_for
from testkit.smtp_server import SmtpServer
from tests.contract.publisher_service.media_folder import MediaFolder

PASSWORD = "correct-horse-battery"
FROM = "ada@example.com"
TIME = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
# Six times as long in all: mail servers get more time. Short ones are for tests in which a server hangs.
SHORT = Limits(request_timeout=timedelta(milliseconds=200))
PATIENT = Limits(request_timeout=timedelta(seconds=5))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpScene:
    server: SmtpServer
    adapter: SmtpAdapter
    media: MediaFolder
    post: Post
    outside: Outside

    @property
    def hurried(self) -> SmtpAdapter:
        """The adapter with less patience, for a server that hangs."""
        return SmtpAdapter(self.outside, SHORT, media=self.media)

    def settings(self, **changes: str) -> Mapping[str, str]:
        return {**self.post.settings, **changes}


@asynccontextmanager
async def smtp_scene(
    folder: Path, *, security: str = "plain", users: Mapping[str, str] | None = None
) -> AsyncIterator[SmtpScene]:
    """Opens a server that knows one user, by the security that is asked for."""
    made = certificate_for("localhost", folder) if security != "plain" else None
    server = SmtpServer(
        users={FROM: PASSWORD} if users is None else users,
        tls=made.server if made else None,
        implicit_tls=security == "tls",
    )
    async with server:
        outside = Outside(
            private_hosts={("localhost", server.port)},
            resolve=lambda _host, _port: ["127.0.0.1"],
            tls=create_default_context(cafile=str(made.file)) if made else None,
        )
        media = MediaFolder(folder)
        settings = {"host": "localhost", "port": str(server.port), "security": security, "from_name": "Ada Lovelace"}
        yield SmtpScene(
            server=server,
            adapter=SmtpAdapter(outside, PATIENT, media=media),
            media=media,
            outside=outside,
            post=Post(
                external_account_id=FROM,
                access_token=PASSWORD,
                channel="email",
                destination="grace@example.org",
                title="Hello",
                text="Dear Grace,\n.\nyours, Ada",
                idempotency_key="job-1",
                organization_id="acme",
                schedule_time=TIME,
                settings=settings,
            ),
        )


def at_port(post: Post, port: int) -> Post:
    return replace(post, settings={**post.settings, "port": str(port)})
