"""A mail is sent once or not at all as far as anybody can know, no matter at which moment its server fails."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.providers.adapter import CredentialsRefused, PreparingAdapter, ProviderDown
from publisher_service.adapters.providers.provider import Provider
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    AuthRefused,
    NoProof,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.preparation import Delayed, Ready, Unfit
from servicekit.clock import SystemClock
from testkit.smtp_server import At
from tests.contract.publisher_service.smtp_scene import FROM, PASSWORD, PATIENT, SmtpScene, smtp_scene

ENDLESS = "250 " + "x" * 200_000
GARBAGE = "<html>It works!</html>"
BEFORE = (At.CONNECT, At.EHLO, At.AUTH, At.MAIL, At.RCPT, At.DATA)
AFTER = (At.BODY, At.KEPT)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[SmtpScene]:
    async with smtp_scene(tmp_path) as opened:
        yield opened


def faults(**facts: Any) -> dict[str, dict[str, Any]]:
    return {
        "a lost connection": {},
        "a hanging one": {"hang": True},
        **{name: {"reply": text} for name, text in facts.items()},
    }


LOST = faults(garbage=GARBAGE, endless=ENDLESS, impossible="354 go on then")


async def test_a_mail_that_cannot_be_written_is_refused_before_a_connection(scene: SmtpScene) -> None:
    seen = await scene.adapter.send(replace(scene.post, destination="=?utf-8?q?a?=@example.org"))
    assert isinstance(seen, Rejected)
    assert scene.server.sessions == 0


async def test_a_mail_that_is_taken_over_is_accepted(scene: SmtpScene) -> None:
    seen = await scene.adapter.send(scene.post)
    assert seen == Accepted(external_id="<job-1@example.com>", external_url="")
    (kept,) = scene.server.kept
    assert (kept.sender, kept.recipients, kept.user) == (FROM, ("grace@example.org",), FROM)
    assert kept.message["Message-ID"] == "<job-1@example.com>"
    assert PASSWORD not in repr((seen, scene.post))


@pytest.mark.parametrize("at", BEFORE)
@pytest.mark.parametrize("fault", LOST)
async def test_what_is_lost_before_the_dot_was_not_sent(scene: SmtpScene, at: At, fault: str) -> None:
    if (at, fault) in {(At.DATA, "impossible"), (At.DATA, "endless")}:
        return  # the proper reply, or what follows it
    scene.server.fail(at, **LOST[fault])
    seen = await (scene.hurried if "hang" in LOST[fault] else scene.adapter).send(scene.post)
    assert isinstance(seen, NotSent), seen
    assert not seen.is_unreachable, "it is the server of one tenant"
    assert scene.server.kept == []


@pytest.mark.parametrize("at", AFTER)
@pytest.mark.parametrize("fault", LOST)
async def test_what_is_lost_behind_the_dot_is_ambiguous(scene: SmtpScene, at: At, fault: str) -> None:
    scene.server.fail(at, **LOST[fault])
    seen = await (scene.hurried if "hang" in LOST[fault] else scene.adapter).send(scene.post)
    assert isinstance(seen, Ambiguous), seen
    assert len(scene.server.kept) == (at is At.KEPT)
    assert PASSWORD not in repr(seen)


REPLIES: dict[str, type[Outcome]] = {
    "421 4.7.0 try again later, closing connection": RateLimited,
    "450 4.2.1 mailbox busy": NotSent,
    "451 4.7.1 Greylisted, try again later": RateLimited,
    "452 4.3.1 insufficient system storage": RateLimited,
    "530 5.7.0 authentication required": RateLimited,
    "550 5.4.5 daily user sending limit exceeded": RateLimited,
    "552 5.3.4 message size exceeds limit": Rejected,
    "554 5.7.1 message rejected as spam": Rejected,
    "550 nobody of that name": Rejected,
}


@pytest.mark.parametrize("at", [At.MAIL, At.RCPT, At.DATA, At.BODY])
@pytest.mark.parametrize("reply", REPLIES)
async def test_a_reply_is_definite_at_any_moment(scene: SmtpScene, at: At, reply: str) -> None:
    scene.server.fail(at, reply)
    seen = await scene.adapter.send(scene.post)
    assert type(seen) is REPLIES[reply], seen
    assert scene.server.kept == []
    assert reply.partition(" ")[2] in repr(seen)


async def test_a_reply_to_greylisting_waits_five_minutes_and_a_quota_a_day(scene: SmtpScene) -> None:
    scene.server.fail(At.RCPT, "451 4.7.1 Greylisted, try again later")
    scene.server.fail(At.RCPT, "550 5.4.5 Daily user sending limit exceeded")
    later, tomorrow = [await scene.adapter.send(scene.post) for _ in range(2)]
    assert isinstance(later, RateLimited)
    assert isinstance(tomorrow, RateLimited)
    assert (later.retry_after.total_seconds(), tomorrow.retry_after.total_seconds()) == (300, 86_400)


@pytest.mark.parametrize(("at", "is_dead"), [(At.RCPT, True), (At.BODY, True), (At.MAIL, False)])
async def test_an_unknown_user_blocks_the_recipient_alone(scene: SmtpScene, at: At, is_dead: bool) -> None:
    """Behind MAIL FROM it is our own address that the server does not know."""
    scene.server.fail(at, "550 5.1.1 user unknown")
    seen = await scene.adapter.send(scene.post)
    assert isinstance(seen, Rejected)
    assert seen.peer_blocked is is_dead


async def test_a_server_that_serves_nobody_is_not_the_recipients_fault(scene: SmtpScene) -> None:
    for at in (At.CONNECT, At.EHLO):
        scene.server.fail(at, "554 5.7.1 no service here")
        assert isinstance(await scene.adapter.send(scene.post), RateLimited)


@pytest.mark.parametrize("reply", ["535 5.7.8 no", "534 5.7.9 log in by the browser", "550 5.7.1 no"])
async def test_a_refused_login_disconnects(scene: SmtpScene, reply: str) -> None:
    scene.server.fail(At.AUTH, reply, times=2)
    assert isinstance(await scene.adapter.send(scene.post), AuthRefused)
    with pytest.raises(CredentialsRefused):
        await scene.adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), scene.post.settings)


async def test_a_wrong_password_is_refused_and_nothing_sent(scene: SmtpScene) -> None:
    post = replace(scene.post, access_token="revoked-5f0c91d2")
    assert isinstance(await scene.adapter.send(post), AuthRefused)
    with pytest.raises(CredentialsRefused):
        await scene.adapter.verify("acme", FROM, Credentials(access_token="revoked-5f0c91d2"), post.settings)
    assert scene.server.kept == []


async def test_good_credentials_are_accepted_without_a_mail(scene: SmtpScene) -> None:
    await scene.adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), scene.post.settings)
    assert scene.server.kept == []
    assert not any(line.startswith("RCPT") for line in scene.server.heard)


@pytest.mark.parametrize("fault", [{}, {"hang": True}, {"reply": "454 4.7.0 later"}, {"reply": GARBAGE}])
async def test_a_login_without_an_answer_is_no_refusal(scene: SmtpScene, fault: dict[str, Any]) -> None:
    scene.server.fail(At.AUTH, **fault)
    with pytest.raises(ProviderDown):
        await scene.hurried.verify("acme", FROM, Credentials(access_token=PASSWORD), scene.post.settings)


async def test_verify_asks_whether_mail_may_be_sent_from_the_address(scene: SmtpScene) -> None:
    scene.server.fail(At.MAIL, "553 5.7.1 sender address rejected: not owned by user")
    with pytest.raises(CredentialsRefused, match="not owned"):
        await scene.adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), scene.post.settings)


async def test_a_slow_server_is_waited_for(scene: SmtpScene) -> None:
    for at in (At.CONNECT, At.RCPT, At.KEPT):
        scene.server.fail(at, seconds=0.2)
    assert isinstance(await scene.adapter.send(scene.post), Accepted)
    assert len(scene.server.kept) == 1


async def test_what_happens_to_the_goodbye_changes_nothing(scene: SmtpScene) -> None:
    for fault in ({}, {"hang": True}, {"reply": "500 what"}):
        scene.server.fail(At.QUIT, **fault)
        assert isinstance(await scene.adapter.send(scene.post), Accepted)
    assert len(scene.server.kept) == 3


async def test_a_server_that_repeats_the_password_does_not_spread_it(scene: SmtpScene) -> None:
    spoken = "AGFkYUBleGFtcGxlLmNvbQBjb3JyZWN0LWhvcnNlLWJhdHRlcnk="
    for at in (At.AUTH, At.BODY):
        scene.server.fail(at, f"554 5.7.0 {PASSWORD} Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5 {spoken}")
        seen = await Provider(scene.adapter, SystemClock()).send(scene.post)
        assert "*** *** ***" in repr(seen)
        assert not any(secret in repr(seen) for secret in (PASSWORD, "Y29ycmVjdC", spoken))
    assert any(spoken in line for line in scene.server.heard), "the login itself has it"


async def test_a_look_proves_nothing_and_a_person_is_asked_at_once(scene: SmtpScene) -> None:
    assert isinstance(await scene.adapter.look(scene.post), NoProof)
    assert scene.adapter.limits.unknown_deadline.total_seconds() == 0


async def test_a_second_request_makes_a_second_mail_under_the_same_name(scene: SmtpScene) -> None:
    for _ in range(2):
        await scene.adapter.send(scene.post)
    first, second = scene.server.kept
    assert first.data == second.data


@pytest.mark.parametrize(
    "change",
    [
        {"title": "a\r\nBcc: eve@example.net"},
        {"title": "a\nb"},
        {"title": "a\u2028b"},
        {"title": ""},
        {"destination": "grace@example.org\r\nRCPT TO:<eve@example.net>"},
        {"destination": "grace@example.org>\nRCPT TO:<eve@example.net"},
        {"destination": "a@example.org,b@example.org"},
        {"destination": "Grace <grace@example.org>"},
        {"destination": "grace@localhost"},
        {"destination": "grace@[127.0.0.1]"},
        {"destination": ""},
    ],
    ids=lambda change: repr(next(iter(change.values()))),
)
async def test_what_would_begin_another_header_or_recipient_is_refused(
    scene: SmtpScene, change: dict[str, str]
) -> None:
    assert isinstance(await scene.adapter.send(replace(scene.post, **change)), Rejected)  # type: ignore[arg-type]
    assert scene.server.heard == []


async def test_a_host_that_turned_private_is_not_called(scene: SmtpScene) -> None:
    outside = Outside(resolve=lambda _host, _port: ["10.0.0.1"])
    adapter = type(scene.adapter)(outside, PATIENT, media=scene.media)
    settings = {"host": "mail.example.com", "port": "587", "security": "starttls"}
    seen = await adapter.send(replace(scene.post, settings=settings))
    assert isinstance(seen, NotSent)
    assert (seen.reason, seen.is_unreachable) == ("URL_PRIVATE", False)
    with pytest.raises(CredentialsRefused, match="not public"):
        await adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), settings)


async def test_without_settings_nothing_is_sent_and_nobody_blamed(scene: SmtpScene) -> None:
    seen = await scene.adapter.send(replace(scene.post, settings={}))
    assert isinstance(seen, RateLimited)
    with pytest.raises(CredentialsRefused, match=r"settings\.host"):
        await scene.adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), {})


async def test_another_from_address_than_the_accounts_is_refused(scene: SmtpScene) -> None:
    settings = scene.settings(from_address="eve@example.com")
    with pytest.raises(CredentialsRefused, match="external_account_id"):
        await scene.adapter.verify("acme", FROM, Credentials(access_token=PASSWORD), settings)
    assert isinstance(await scene.adapter.send(replace(scene.post, settings=settings)), RateLimited)


async def test_attachments_are_checked_before_the_mail_is_due(scene: SmtpScene) -> None:
    adapter: PreparingAdapter = scene.adapter
    assert await adapter.prepare(scene.post) == Ready(handle="text")
    assert scene.media.opened == []
    small = scene.media.add("a.pdf", b"%PDF")
    assert isinstance(await adapter.prepare(replace(scene.post, media=(small,))), Ready)
    assert isinstance(await adapter.check(replace(scene.post, media=(small,), handle="attachments")), Ready)
    large = scene.media.add("b.pdf", bytes(13_000_000)), scene.media.add("c.pdf", bytes(13_000_000))
    unfit = await adapter.prepare(replace(scene.post, media=large))
    assert isinstance(unfit, Unfit)
    assert unfit.reason == "MEDIA_TOO_LARGE"
    changed = replace(small, sha256="0" * 64)
    assert isinstance(await adapter.prepare(replace(scene.post, media=(changed,))), Unfit)
    gone = replace(small, url="https://media.example.com/unavailable.pdf")
    assert isinstance(await adapter.prepare(replace(scene.post, media=(gone,))), Delayed)
    assert isinstance(await adapter.send(replace(scene.post, media=(changed,))), Rejected)
    assert isinstance(await adapter.send(replace(scene.post, media=(gone,))), NotSent)
    assert scene.server.sessions == 0
