"""Mail and messages through Unipile go to one person, once, and are found again."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.faults import Fault, Rule
from devstack.networks.unipile import KEY, LINKEDIN, MAILBOX, Unipile, member_id
from publisher_service.adapters.providers.adapter import CredentialsRefused, ProviderDown
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.provider import Provider
from publisher_service.adapters.providers.unipile import UnipileAdapter
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    AuthRefused,
    Level,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.preparation import CredentialsInvalid, Delayed, Ready, Unfit
from servicekit.clock import SystemClock
from servicekit.run.settings import Secret
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import LIMITS, MakeScene, Scene
from tests.contract.publisher_service.scenes_mail import (
    unipile_connection,
    unipile_email,
    unipile_inmail,
    unipile_message,
    unipile_post,
)

ALL = pytest.mark.parametrize(
    "make", [unipile_email, unipile_message, unipile_inmail, unipile_connection], ids=lambda make: make.name
)


@asynccontextmanager
async def opened(make: MakeScene, folder: Path) -> AsyncIterator[Scene]:
    async with make(folder) as scene:
        yield scene
        assert scene.network.problems == []


def refusal(kind: str, status: int = 422, detail: str = "") -> Rule:
    body = {"title": kind, "detail": detail, "type": f"errors/{kind}", "status": status}
    return Rule(fault=Fault.ANSWER, status=status, body=body)


async def test_an_email_is_plain_text_with_a_subject_to_one_person(tmp_path: Path) -> None:
    async with opened(unipile_email, tmp_path) as scene:
        post = replace(await scene.ready("Dear Grace,\n<b>&amp;"), link="https://example.com/a?b=c")
        seen = await scene.adapter.send(post)
        (mail,) = scene.network.effects
        assert seen == Accepted(external_id=mail["id"], external_url="")
        assert (mail["title"], mail["destination"]) == ("Hello", "grace@example.org")
        assert mail["text"] == "Dear Grace,\n<b>&amp;\n\nhttps://example.com/a?b=c"
        assert mail["headers"] == [{"name": "Content-Type", "value": "text/plain; charset=utf-8"}]


async def test_attachments_arrive_as_they_are(tmp_path: Path) -> None:
    for make in (unipile_email, unipile_message):
        async with opened(make, tmp_path) as scene:
            media = MediaFolder(tmp_path)
            files = media.add("a.pdf", bytes(range(256)) * 2000), media.add("b.png", b"\r\n--x--\r\n")
            post = replace(await scene.ready(), media=files)
            assert await scene.adapter.prepare(post) == Ready(handle="text")  # type: ignore[attr-defined]
            assert isinstance(await scene.adapter.send(post), Accepted)
            assert scene.network.effects[0]["media"] == [each.sha256 for each in files]


async def test_media_that_changed_or_is_missing_sends_nothing(tmp_path: Path) -> None:
    async with opened(unipile_email, tmp_path) as scene:
        adapter = scene.adapter
        assert isinstance(adapter, UnipileAdapter)
        good = MediaFolder(tmp_path).add("a.pdf", b"%PDF")
        changed = replace(scene.post, media=(replace(good, sha256="0" * 64),))
        gone = replace(scene.post, media=(replace(good, url="https://example.com/unavailable.pdf"),))
        large = replace(scene.post, media=(MediaFolder(tmp_path).add("b.pdf", bytes(25_000_001)),))
        assert [type(await adapter.prepare(each)) for each in (changed, gone, large)] == [Unfit, Delayed, Unfit]
        outcomes: list[type[Outcome]] = [type(await adapter.send(each)) for each in (changed, gone, large)]
        expected: list[type[Outcome]] = [Rejected, NotSent, Rejected]
        assert outcomes == expected
        assert scene.network.calls == []


async def test_media_that_come_too_slowly_have_sent_nothing(tmp_path: Path) -> None:
    async with Unipile() as network:
        origin, media = HttpOrigin(network.url, connections=1), MediaFolder(tmp_path)
        adapter = UnipileAdapter(origin, LIMITS, api_key=Secret(KEY), media=media)
        post = unipile_post(MAILBOX, "email", "grace@example.org", "Hello")
        media.slow.add("a.pdf")
        seen = await Provider(adapter, SystemClock()).send(replace(post, media=(media.add("a.pdf"),)))
        assert isinstance(seen, NotSent)
        assert seen.reason == "MEDIA_UNAVAILABLE"
        assert network.calls == []
        await origin.close()


async def test_a_public_name_becomes_the_id_that_the_account_sees(tmp_path: Path) -> None:
    async with opened(unipile_connection, tmp_path) as scene:
        adapter = scene.adapter
        assert isinstance(adapter, UnipileAdapter)
        ready = await adapter.prepare(scene.post)
        assert ready == Ready(handle=json.dumps({"member": member_id(LINKEDIN, "alan-turing")}))
        assert isinstance(await adapter.send(replace(scene.post, handle=ready.handle)), Accepted)
        assert scene.network.effects_of(destination="alan-turing")
        assert isinstance(await adapter.send(scene.post), Rejected), "not found out"


async def test_an_id_of_a_member_is_not_looked_up(tmp_path: Path) -> None:
    async with opened(unipile_message, tmp_path) as scene:
        await scene.ready()
        assert scene.network.calls == []


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (None, Unfit),
        (Rule(fault=Fault.RESET), Delayed),
        (Rule(fault=Fault.HTML), Unfit),
        (refusal("too_many_requests", 429), Delayed),
        (refusal("disconnected_account", 401), CredentialsInvalid),
    ],
    ids=["nobody", "lost", "html", "later", "disconnected"],
)
async def test_a_member_that_cannot_be_found_gets_nothing(
    tmp_path: Path, rule: Rule | None, expected: type[object]
) -> None:
    async with opened(unipile_connection, tmp_path) as scene:
        assert isinstance(scene.adapter, UnipileAdapter)
        if rule is not None:
            scene.network.faults.add(rule)
        assert type(await scene.adapter.prepare(replace(scene.post, destination="nobody-here"))) is expected


OUTCOMES: dict[str, tuple[type[Outcome], int]] = {
    "missing_credentials": (RateLimited, 401),
    "disconnected_account": (AuthRefused, 401),
    "account_restricted": (AuthRefused, 403),
    "subscription_required": (Rejected, 403),
    "limit_exceeded": (RateLimited, 422),
    "insufficient_credits": (RateLimited, 422),
    "no_connection_with_recipient": (Rejected, 422),
    "already_invited_recently": (Rejected, 422),
    "no_client_session": (NotSent, 503),
    "service_unavailable": (Ambiguous, 503),
    "unexpected_error": (Ambiguous, 500),
    "request_timeout": (Ambiguous, 504),
    "resource_already_used": (Ambiguous, 409),
    "something_new": (Rejected, 422),
}


@ALL
@pytest.mark.parametrize("kind", OUTCOMES)
async def test_an_error_has_its_outcome_on_every_channel(tmp_path: Path, make: MakeScene, kind: str) -> None:
    async with opened(make, tmp_path) as scene:
        post = await scene.ready()
        expected, status = OUTCOMES[kind]
        scene.network.faults.add(replace(refusal(kind, status), operation=scene.publish))
        assert isinstance(seen := await scene.adapter.send(post), expected), seen
        assert scene.network.effects == []


async def test_limits_of_the_network_wait_for_the_next_day_on_their_channel(tmp_path: Path) -> None:
    async with opened(unipile_connection, tmp_path) as scene:
        post = await scene.ready()
        scene.network.faults.add(replace(refusal("limit_exceeded"), operation="invite"))
        scene.network.faults.add(replace(refusal("too_many_requests", 429), operation="invite"))
        quota, busy = [await scene.adapter.send(post) for _ in range(2)]
        assert isinstance(quota, RateLimited)
        assert isinstance(busy, RateLimited)
        assert (quota.retry_after, quota.level) == (timedelta(days=1), Level.CHANNEL)
        assert (busy.retry_after, busy.level) == (timedelta(minutes=30), Level.ACCOUNT)


@pytest.mark.parametrize("kind", ["invalid_recipient", "blocked_recipient", "recipient_rejected"])
async def test_a_recipient_that_is_gone_is_blocked(tmp_path: Path, kind: str) -> None:
    async with opened(unipile_email, tmp_path) as scene:
        scene.network.faults.add(refusal(kind))
        seen = await scene.adapter.send(await scene.ready())
        assert isinstance(seen, Rejected)
        assert seen.peer_blocked


async def test_what_is_not_found_is_the_account_or_the_member(tmp_path: Path) -> None:
    missing = refusal("resource_not_found", 404, "The requested resource were not found.")
    async with opened(unipile_email, tmp_path) as scene:
        scene.network.faults.add(missing)
        assert isinstance(await scene.adapter.send(await scene.ready()), AuthRefused)
    async with opened(unipile_message, tmp_path) as scene:
        scene.network.faults.add(missing, refusal("resource_not_found", 404, "Account not found"))
        member, account = [await scene.adapter.send(await scene.ready()) for _ in range(2)]
        assert isinstance(member, Rejected)
        assert isinstance(account, AuthRefused)


async def test_a_key_that_is_wrong_is_no_accounts_fault(tmp_path: Path) -> None:
    async with opened(unipile_email, tmp_path) as scene:
        origin = HttpOrigin(scene.network.url, connections=1)
        adapter = UnipileAdapter(origin, LIMITS, api_key=Secret("wrong-key-0815"), media=MediaFolder(tmp_path))
        assert isinstance(await adapter.send(await scene.ready()), RateLimited)
        with pytest.raises(ProviderDown):
            await adapter.verify("acme", MAILBOX, Credentials(access_token=""), {})
        await origin.close()


async def test_the_key_is_in_no_message(tmp_path: Path) -> None:
    async with opened(unipile_email, tmp_path) as scene:
        provider = Provider(scene.adapter, SystemClock())
        scene.network.faults.add(refusal("invalid_message", detail=f"no {KEY}"), refusal("x", 401, detail=KEY))
        seen = [await provider.send(await scene.ready()) for _ in range(2)]
        scene.network.faults.add(refusal("disconnected_account", 401, detail=KEY))
        looked = await provider.look(await scene.ready())
        assert all("***" in repr(each) for each in (*seen, looked))
        assert KEY not in repr((seen, looked, scene.adapter, scene.post))


async def test_verify_asks_for_the_account_and_not_for_a_token(tmp_path: Path) -> None:
    async with opened(unipile_email, tmp_path) as scene:
        await scene.adapter.verify("acme", MAILBOX, Credentials(access_token="anything"), {})
        with pytest.raises(CredentialsRefused, match=f"^{UnipileAdapter.unknown_account}$"):
            await scene.adapter.verify("acme", "acc-unknown", Credentials(access_token="anything"), {})
        for unknown in ("..", "a/b"):
            with pytest.raises((CredentialsRefused, ProviderDown)):
                await scene.adapter.verify("acme", unknown, Credentials(access_token="anything"), {})
        for state in ("CREDENTIALS", "PERMISSIONS", "STOPPED"):
            scene.network.accounts[MAILBOX] = state  # type: ignore[attr-defined]
            with pytest.raises(CredentialsRefused, match=state):
                await scene.adapter.verify("acme", MAILBOX, Credentials(access_token="anything"), {})
        for fault in (Fault.RESET, Fault.HTML, Fault.ERROR_IN_200, Fault.ANSWER, Fault.RATE_LIMIT):
            scene.network.faults.clear()
            scene.network.faults.add(Rule(fault=fault, count=0))
            with pytest.raises(ProviderDown):
                await scene.adapter.verify("acme", MAILBOX, Credentials(access_token="anything"), {})


async def test_an_invitation_that_is_out_already_says_nothing_against_the_member(tmp_path: Path) -> None:
    for kind in ("already_invited_recently", "already_connected"):
        async with opened(unipile_connection, tmp_path) as scene:
            scene.network.faults.add(replace(refusal(kind), operation="invite"))
            seen = await scene.adapter.send(await scene.ready())
            assert isinstance(seen, Rejected)
            assert (seen.is_repeat, seen.peer_blocked) == (True, False)


@ALL
async def test_a_429_is_a_limit_only_if_unipile_says_so(tmp_path: Path, make: MakeScene) -> None:
    async with opened(make, tmp_path) as scene:
        for body in ("", "<h1>Too many requests</h1>", {"type": "about:blank", "status": 429}):
            scene.network.faults.add(Rule(fault=Fault.ANSWER, status=429, body=body, operation=scene.publish))
            assert isinstance(await scene.adapter.send(await scene.ready()), Ambiguous)


@pytest.mark.parametrize(
    "change",
    [{"title": "a\r\nb"}, {"title": ""}, {"destination": "nobody"}, {"destination": "a@example.org, b@example.org"}],
    ids=repr,
)
async def test_a_malformed_mail_is_refused_before_a_request(tmp_path: Path, change: dict[str, str]) -> None:
    async with opened(unipile_email, tmp_path) as scene:
        post = replace(await scene.ready(), **change)  # type: ignore[arg-type]
        assert isinstance(await scene.adapter.send(post), Rejected)
        assert scene.network.calls == []


async def test_an_inmail_without_credits_waits(tmp_path: Path) -> None:
    async with opened(unipile_inmail, tmp_path) as scene:
        scene.network.inmails_left = 0  # type: ignore[attr-defined]
        assert isinstance(await scene.adapter.send(await scene.ready()), RateLimited)


async def test_a_message_to_a_stranger_is_refused(tmp_path: Path) -> None:
    async with opened(unipile_message, tmp_path) as scene:
        post = replace(await scene.ready(), destination=member_id(LINKEDIN, "alan-turing"))
        seen = await scene.adapter.send(post)
        assert isinstance(seen, Rejected)
        assert not seen.peer_blocked


async def test_a_note_is_left_out_if_there_is_none(tmp_path: Path) -> None:
    async with opened(unipile_connection, tmp_path) as scene:
        post = await scene.ready(text="")
        assert isinstance(await scene.adapter.send(post), Accepted)
        assert scene.network.effects[0]["text"] == ""
