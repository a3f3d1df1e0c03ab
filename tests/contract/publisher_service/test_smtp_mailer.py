"""A mail is handed over as SMTP says; every answer is judged, and no password is repeated."""

import base64
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from publisher_service.adapters.mail.mail import FolderMailer, Mail
from publisher_service.adapters.mail.mail_url import SmtpPlace, read_mail_url
from publisher_service.adapters.mail.smtp import SmtpMailer
from publisher_service.domain.delivery import Accepted, NotAccepted
from servicekit.run.settings import Secret
from testkit.certificates import Certificate, certificate_for
from testkit.smtp_server import At, SmtpServer

CANARY = "canary-password-7f3a"
MAIL = Mail(
    id="d1",
    sender="postflow@example.com",
    recipient="ann@example.com",
    content=b"Subject: hello\r\n\r\n.dots stay\r\n",
)


@pytest.fixture
async def server() -> AsyncIterator[SmtpServer]:
    async with SmtpServer() as server:
        yield server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder: Path = tmp_path_factory.mktemp("certificate")
    return certificate_for("localhost", folder)


def mailer(server: SmtpServer, tls: ssl.SSLContext | None = None, seconds: float = 5, **place: object) -> SmtpMailer:
    fields = {"host": "localhost", "port": server.port, **place}
    return SmtpMailer(SmtpPlace(**fields), helo="example.com", timeout=timedelta(seconds=seconds), tls=tls)  # type: ignore[arg-type]


async def refusal(mailer: SmtpMailer) -> NotAccepted:
    result = await mailer.send(MAIL)
    assert isinstance(result, NotAccepted)
    assert CANARY not in repr(result)
    return result


async def test_a_mail_is_handed_over_byte_for_byte(server: SmtpServer) -> None:
    assert await mailer(server).send(MAIL) == Accepted()
    (kept,) = server.kept
    assert (kept.sender, kept.recipients, kept.data) == (MAIL.sender, (MAIL.recipient,), MAIL.content)
    assert server.heard[0] == "EHLO example.com"


@pytest.mark.parametrize(
    ("at", "reply", "reason", "is_final"),
    [
        (At.RCPT, "550 5.1.1 nobody", "SMTP_550", True),
        (At.RCPT, "451 4.7.1 greylisted", "SMTP_451", False),
        (At.DATA, "554 5.6.0 no", "SMTP_554", True),
        (At.BODY, "552 5.3.4 too large", "SMTP_552", True),
        (At.BODY, "452 4.3.1 full", "SMTP_452", False),
        (At.MAIL, "553 5.1.8 no such sender", "SMTP_553", False),
        (At.EHLO, "421 4.3.2 stopping", "SMTP_421", False),
        (At.CONNECT, "554 5.3.2 go away", "SMTP_554", False),
    ],
)
async def test_only_a_refusal_of_this_mail_is_final(
    server: SmtpServer, at: At, reply: str, reason: str, is_final: bool
) -> None:
    server.fail(at, reply, times=2)  # a refused EHLO is followed by HELO
    refused = await refusal(mailer(server))
    assert (refused.reason, refused.is_final) == (reason, is_final)
    assert not server.kept


@pytest.mark.parametrize("at", [At.CONNECT, At.MAIL, At.BODY, At.KEPT])
async def test_a_broken_connection_is_no_success(server: SmtpServer, at: At) -> None:
    server.fail(at)
    assert not (await refusal(mailer(server))).is_final


async def test_a_mail_that_was_taken_over_counts_however_the_session_ends(server: SmtpServer) -> None:
    server.fail(At.QUIT)
    assert await mailer(server).send(MAIL) == Accepted()


async def test_a_server_that_hangs_is_left(server: SmtpServer) -> None:
    server.fail(At.DATA, hang=True)
    assert (await refusal(mailer(server, seconds=0.2))).reason == "TIMEOUT"


async def test_a_server_that_is_not_there_is_unreachable(server: SmtpServer) -> None:
    gone = mailer(server, port=1)
    assert (await refusal(gone)).reason == "CONNECT_FAILED"


async def test_a_wrong_password_is_a_mistake_of_the_set_up_and_stays_unsaid() -> None:
    async with SmtpServer(users={"ann": "right"}) as server:
        wrong = mailer(server, user="ann", password=Secret(CANARY))
        server.fail(At.AUTH, f"535 5.7.8 {CANARY} is wrong")
        refused = await refusal(wrong)
        assert (refused.reason, refused.is_final) == ("SMTP_LOGIN", False)


async def test_a_server_that_repeats_our_password_is_not_quoted() -> None:
    async with SmtpServer(users={"ann": CANARY}) as server:
        login = base64.b64encode(f"\0ann\0{CANARY}".encode()).decode()
        server.fail(At.RCPT, f"550 5.1.1 {CANARY} {login}")
        refused = await refusal(mailer(server, user="ann", password=Secret(CANARY)))
        assert login not in refused.message
        assert "***" in refused.message


@pytest.mark.parametrize("scheme", ["smtps", "smtp+starttls"])
async def test_encrypted_mail_needs_a_certificate_that_we_trust(certificate: Certificate, scheme: str) -> None:
    async with SmtpServer(tls=certificate.server, implicit_tls=scheme == "smtps") as server:
        place = read_mail_url(Secret(f"{scheme}://localhost:{server.port}"))
        assert isinstance(place, SmtpPlace)
        trusting = ssl.create_default_context(cafile=certificate.file)
        timeout = timedelta(seconds=5)
        strict = SmtpMailer(place, helo="example.com", timeout=timeout)
        assert isinstance(await strict.send(MAIL), NotAccepted)
        assert await SmtpMailer(place, helo="example.com", timeout=timeout, tls=trusting).send(MAIL) == Accepted()
        assert [kept.is_encrypted for kept in server.kept] == [True]


async def test_starttls_that_is_taken_away_sends_nothing(server: SmtpServer) -> None:
    refused = await refusal(mailer(server, start_tls=True))
    assert refused.reason == "SMTP_NO_TLS"
    assert not any(line.startswith("MAIL") for line in server.heard)


async def test_a_folder_gets_one_file_for_each_mail(tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    for _ in range(2):
        assert await FolderMailer(folder).send(MAIL) == Accepted()
    (file,) = folder.iterdir()
    assert (file.name, file.read_bytes(), file.stat().st_mode & 0o777) == ("d1.eml", MAIL.content, 0o600)
    (tmp_path / "file").write_text("")
    blocked = await FolderMailer(tmp_path / "file").send(MAIL)
    assert isinstance(blocked, NotAccepted)
    assert blocked.reason == "FOLDER"
