"""The SMTP server of tests answers a real client as servers do, and fails where it is to."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiosmtplib
import pytest

from testkit.certificates import Certificate, certificate_for
from testkit.smtp_server import At, SmtpServer

MAIL = b"From: a@example.com\r\nTo: b@example.com\r\nSubject: hello\r\n\r\n.dotted\r\nlast\r\n"


@pytest.fixture
async def server() -> AsyncIterator[SmtpServer]:
    async with SmtpServer() as server:
        yield server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder: Path = tmp_path_factory.mktemp("certificate")
    return certificate_for("localhost", folder)


async def send(server: SmtpServer, *recipients: str, **options: object) -> None:
    client = aiosmtplib.SMTP(hostname="localhost", port=server.port, **{"timeout": 5, "start_tls": False, **options})  # type: ignore[arg-type]
    async with client:
        await client.sendmail("a@example.com", recipients or ["b@example.com"], MAIL)


async def test_a_message_is_kept_as_it_was_sent(server: SmtpServer) -> None:
    await send(server, "b@example.com", "c@example.com")
    (kept,) = server.kept
    assert (kept.sender, kept.recipients) == ("a@example.com", ("b@example.com", "c@example.com"))
    assert kept.data == MAIL
    assert kept.message["Subject"] == "hello"
    assert not kept.is_encrypted


async def test_users_must_show_their_password(server: SmtpServer) -> None:
    async with SmtpServer(users={"ann": "secret"}) as guarded:
        with pytest.raises(aiosmtplib.SMTPSenderRefused) as refused:
            await send(guarded)
        assert refused.value.code == 530
        with pytest.raises(aiosmtplib.SMTPAuthenticationError):
            await send(guarded, username="ann", password="wrong")
        await send(guarded, username="ann", password="secret")
        assert [kept.user for kept in guarded.kept] == ["ann"]


@pytest.mark.parametrize("implicit", [False, True])
async def test_mail_is_encrypted_on_demand(certificate: Certificate, implicit: bool) -> None:
    trusting = ssl.create_default_context(cafile=certificate.file)
    async with SmtpServer(tls=certificate.server, implicit_tls=implicit) as server:
        options = {"use_tls": True} if implicit else {"start_tls": True}
        await send(server, tls_context=trusting, **options)
        assert [kept.is_encrypted for kept in server.kept] == [True]


@pytest.mark.parametrize("at", [At.MAIL, At.DATA, At.BODY])
async def test_a_scripted_reply_comes_once_at_its_moment(server: SmtpServer, at: At) -> None:
    server.fail(at, "451 4.3.0 later")
    with pytest.raises(aiosmtplib.SMTPResponseException) as refused:
        await send(server)
    assert refused.value.code == 451
    assert not server.kept
    await send(server)
    assert len(server.kept) == 1


async def test_one_recipient_of_two_is_refused(server: SmtpServer) -> None:
    server.fail(At.RCPT, "550 5.1.1 nobody", about="c@example.com")
    await send(server, "b@example.com", "c@example.com")
    assert [kept.recipients for kept in server.kept] == [("b@example.com",)]


@pytest.mark.parametrize("at", [at for at in At if at not in {At.STARTTLS, At.AUTH, At.QUIT}])
async def test_a_connection_breaks_at_any_moment(server: SmtpServer, at: At) -> None:
    server.fail(at)
    with pytest.raises((aiosmtplib.SMTPException, OSError)):
        await send(server)
    # Only then does the server have what the client believes lost.
    assert len(server.kept) == (1 if at is At.KEPT else 0)
    await send(server)


async def test_a_hanging_server_waits_for_the_client_to_give_up(server: SmtpServer) -> None:
    server.fail(At.MAIL, hang=True)
    with pytest.raises(aiosmtplib.SMTPTimeoutError):
        await send(server, timeout=0.2)
    assert not server.kept


async def test_forgotten_faults_do_not_come(server: SmtpServer) -> None:
    server.fail(At.DATA, "451 4.3.0 later", times=9)
    server.heal()
    await send(server)
    assert server.sessions == 1
    assert server.heard[1].startswith("MAIL FROM:<a@example.com>")
