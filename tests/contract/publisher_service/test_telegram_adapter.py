"""Messages on Telegram: sent once with the bytes that were approved, and never looked up."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from devstack.networks.faults import Fault, Rule
from devstack.networks.telegram import Chat, Telegram
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, ProviderDown
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.telegram import TelegramAdapter
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    Level,
    NoProof,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.preparation import Delayed, Processing, Ready, Unfit
from testkit.clocks import FrozenClock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import LIMITS, prepared
from tests.contract.publisher_service.scenes_linkedin import BOT, BOT_TOKEN, MESSAGE


@dataclass
class Rig:
    network: Telegram
    adapter: TelegramAdapter
    media: MediaFolder
    clock: FrozenClock

    def message(self, text: str = "hello", **facts: Any) -> Post:
        return replace(MESSAGE, text=text, **facts)

    def file(self, name: str, data: bytes = b"bytes") -> ContentMedia:
        return self.media.add(name, data)

    async def send(self, post: Post) -> Outcome:
        return await self.adapter.send(await prepared(self.adapter, post))


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    clock, media = FrozenClock(), MediaFolder(tmp_path)
    async with Telegram(clock=clock) as network:
        network.add_bot(BOT_TOKEN, "Example_bot")
        network.add_chat(Chat(-1001234567890, username="example"))
        origin = HttpOrigin(network.url, connections=4)
        yield Rig(network, TelegramAdapter(origin, LIMITS, media=media, clock=clock), media, clock)
        await origin.close()
        assert network.problems == []


@pytest.mark.parametrize(
    ("chat", "url"),
    [
        (Chat(-1001, "channel", "public_one"), "https://t.me/public_one/1"),
        (Chat(-1009876, "channel"), "https://t.me/c/9876/1"),
        (Chat(-1009876, "supergroup"), "https://t.me/c/9876/1"),
        (Chat(-55, "group"), ""),
        (Chat(77, "private", "somebody"), ""),
    ],
    ids=lambda each: each.type if isinstance(each, Chat) else "",
)
async def test_a_message_has_the_link_of_its_chat(rig: Rig, chat: Chat, url: str) -> None:
    rig.network.add_chat(chat)
    seen = await rig.send(rig.message(destination=str(chat.id)))
    assert seen == Accepted(external_id=f"{chat.id}/1", external_url=url, publish_time=rig.clock.now())


async def test_a_text_is_shown_as_it_is_with_its_link(rig: Rig) -> None:
    text = "<b>*a*</b> _b_ [c](d) & \\ \U0001f600 \n"
    await rig.send(rig.message(text, link="https://example.com/a"))
    await rig.send(rig.message("https://example.com/a!", link="https://example.com/a"))
    assert [each["text"] for each in rig.network.effects] == [
        f"{text}\n\nhttps://example.com/a",
        "https://example.com/a!",
    ]


@pytest.mark.parametrize(("length", "expected"), [(2048, Accepted), (2049, Rejected)])
async def test_a_text_is_counted_as_telegram_counts_it(rig: Rig, length: int, expected: type) -> None:
    assert isinstance(await rig.send(rig.message("\U0001f600" * length)), expected)


@pytest.mark.parametrize("name", ["a.jpg", "a.mp4", "a.pdf", "a.gif"])
async def test_the_bytes_go_along_with_the_request(rig: Rig, name: str) -> None:
    data = b"\r\n--boundary\x00" * 50_000
    seen = await rig.send(rig.message("Zoë", media=(rig.file(name, data),)))
    assert isinstance(seen, Accepted)
    (effect,) = rig.network.effects
    assert (effect["text"], effect["media"]) == ("Zoë", [hashlib.sha256(data).hexdigest()])


@pytest.mark.parametrize("names", [["a.jpg", "b.mp4", "c.jpg"], ["a.pdf", "b.pdf"]])
async def test_several_files_are_one_album(rig: Rig, names: list[str]) -> None:
    media = tuple(rig.file(name, name.encode()) for name in names)
    seen = await rig.send(rig.message("All", media=media))
    assert isinstance(seen, Accepted)
    assert seen.external_id == "-1001234567890/1"
    (effect,) = rig.network.effects
    assert (effect["text"], effect["media"]) == ("All", [hashlib.sha256(name.encode()).hexdigest() for name in names])


async def test_media_are_opened_before_they_are_due(rig: Rig) -> None:
    assert await rig.adapter.prepare(rig.message()) == Ready(handle="text")
    media = tuple(rig.file(name) for name in ("a.jpg", "b.mp4"))
    first = await rig.adapter.prepare(rig.message(media=media))
    assert first == Processing(handle="p")
    assert await rig.adapter.check(rig.message(media=media, handle="p")) == Ready(handle="pv")
    assert await rig.adapter.check(rig.message(media=media, handle="pv")) == Ready(handle="pv")
    assert rig.media.opened == ["a.jpg", "b.mp4"]
    assert rig.network.calls == []


@pytest.mark.parametrize(
    ("names", "size", "reason"),
    [
        (["a.jpg"], 10_000_001, "MEDIA_TOO_LARGE"),
        (["a.pdf"], 50_000_001, "MEDIA_TOO_LARGE"),
        (["a.jpg", "b.pdf"], 1, "MEDIA_CANNOT_MIX"),
        (["a.gif", "b.jpg"], 1, "MEDIA_CANNOT_MIX"),
    ],
)
async def test_files_that_telegram_refuses_are_found_early(rig: Rig, names: list[str], size: int, reason: str) -> None:
    post = rig.message(media=tuple(rig.file(name, bytes(size)) for name in names))
    seen = await rig.adapter.prepare(post)
    while isinstance(seen, Processing):
        seen = await rig.adapter.check(replace(post, handle=seen.handle))
    assert isinstance(seen, Unfit)
    assert seen.reason == reason


async def test_media_that_change_or_are_away_stop_a_message(rig: Rig) -> None:
    post = await prepared(rig.adapter, rig.message(media=(rig.file("a.jpg"), rig.file("b.jpg", b"other"))))
    rig.media.away.add("b.jpg")
    away = await rig.adapter.send(post)
    assert isinstance(away, NotSent)
    assert (away.reason, away.is_unreachable) == ("MEDIA_UNAVAILABLE", False)
    assert isinstance(await rig.adapter.check(replace(post, handle="p")), Delayed)
    rig.media.away.clear()
    (rig.media.folder / "a.jpg").write_bytes(b"another")
    changed = await rig.adapter.send(post)
    assert isinstance(changed, Rejected)
    assert changed.reason == "MEDIA_CHANGED"
    assert rig.network.calls == []


async def test_a_request_whose_end_has_not_left_has_sent_nothing(rig: Rig) -> None:
    post = await prepared(rig.adapter, rig.message(media=(rig.file("a.jpg"),)))
    rig.media.short.add("a.jpg")
    seen = await rig.adapter.send(post)
    assert isinstance(seen, NotSent)
    assert (seen.reason, seen.is_unreachable) == ("UPLOAD_INCOMPLETE", False)
    assert rig.network.effects == []


async def test_a_file_that_cannot_be_read_to_its_end_has_sent_nothing(rig: Rig) -> None:
    post = await prepared(rig.adapter, rig.message(media=(rig.file("a.jpg"),)))
    rig.media.broken.add("a.jpg")
    seen = await rig.adapter.send(post)
    assert isinstance(seen, NotSent)
    assert seen.reason == "MEDIA_UNAVAILABLE"
    assert rig.network.effects == []


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.HANG])
async def test_a_lost_answer_to_a_whole_request_is_ambiguous(rig: Rig, fault: Fault) -> None:
    post = await prepared(rig.adapter, rig.message(media=(rig.file("a.jpg"),)))
    rig.network.faults.add(Rule(fault=fault, effect=True, operation="sendFile"))
    assert isinstance(await rig.adapter.send(post), Ambiguous)
    assert len(rig.network.effects) == 1


async def test_a_group_that_has_moved_gets_the_message_once(rig: Rig) -> None:
    rig.network.add_chat(Chat(-55, "group", moved_to=-1009876))
    rig.network.add_chat(Chat(-1009876, "supergroup"))
    for media in ((), (rig.file("a.jpg"),)):
        seen = await rig.send(rig.message(destination="-55", media=media))
        assert isinstance(seen, Accepted)
        assert seen.external_id.startswith("-1009876/")
    assert [each["chat"] for each in rig.network.effects] == [-1009876, -1009876]


async def test_the_second_request_decides_about_a_moved_group(rig: Rig) -> None:
    rig.network.add_chat(Chat(-55, "group", moved_to=-56))
    rig.network.add_chat(Chat(-56, "group", moved_to=-57))
    seen = await rig.send(rig.message(destination="-55"))
    assert isinstance(seen, Rejected)
    assert not seen.peer_blocked
    assert len(rig.network.calls) == 2
    rig.network.add_chat(Chat(-56, "supergroup"))
    rig.network.faults.add(Rule(fault=Fault.RESET, effect=True, operation="sendMessage", skip=1))
    assert isinstance(await rig.send(rig.message(destination="-55")), Ambiguous)


@pytest.mark.parametrize("forbids", ["bot was blocked by the user", "bot was kicked from the channel chat", "anything"])
async def test_a_chat_that_wants_no_messages_is_called_so(rig: Rig, forbids: str) -> None:
    rig.network.add_chat(Chat(77, "private", forbids=forbids))
    for destination in ("77", "@nobody"):
        seen = await rig.send(rig.message(destination=destination))
        assert isinstance(seen, Rejected)
        assert seen.peer_blocked


async def test_a_flood_has_to_wait_as_long_as_the_body_says(rig: Rig) -> None:
    chat = rig.network.chats["@example"]
    rig.network.flood(chat, 3600)
    seen = await rig.send(rig.message())
    assert isinstance(seen, RateLimited)
    assert (seen.level, seen.retry_after) == (Level.ACCOUNT, timedelta(seconds=3601))


@pytest.mark.parametrize(
    ("headers", "parameters", "seconds"),
    [
        ({"Retry-After": "9"}, {"retry_after": 5}, 5),
        ({"Retry-After": "9"}, {}, 9),
        ({}, {"retry_after": 10**40}, 86400),
    ],
)
async def test_body_then_header_say_how_long(
    rig: Rig, headers: dict[str, str], parameters: dict[str, int], seconds: int
) -> None:
    body = {"ok": False, "error_code": 429, "description": "Too Many Requests", "parameters": parameters}
    rig.network.faults.add(Rule(fault=Fault.ANSWER, status=429, headers=headers, body=body))
    seen = await rig.send(rig.message())
    assert isinstance(seen, RateLimited)
    assert seen.retry_after == timedelta(seconds=seconds)


@pytest.mark.parametrize("status", [400, 403, 404, 429])
async def test_a_refusal_that_is_not_telegrams_proves_nothing(rig: Rig, status: int) -> None:
    rig.network.faults.add(Rule(fault=Fault.ANSWER, status=status, body="<html>no</html>"))
    assert isinstance(await rig.send(rig.message()), Ambiguous)


async def test_a_comment_answers_its_message_where_that_is(rig: Rig) -> None:
    first = await rig.send(rig.message())
    assert isinstance(first, Accepted)
    await rig.send(rig.message("more", follows=first.external_id, destination="@elsewhere"))
    assert [(each["chat"], each["reply"]) for each in rig.network.effects] == [
        (-1001234567890, None),
        (-1001234567890, 1),
    ]
    gone = await rig.send(rig.message("more", follows="-1001234567890/99"))
    assert isinstance(gone, Rejected)


async def test_a_message_needs_a_chat(rig: Rig) -> None:
    post = rig.message(destination="")
    assert isinstance(await rig.adapter.prepare(post), Unfit)
    assert isinstance(await rig.adapter.send(post), Rejected)
    assert rig.network.calls == []


@pytest.mark.parametrize("account", [BOT, "example_bot", "@Example_bot"])
async def test_a_bot_is_known_by_its_number_or_name(rig: Rig, account: str) -> None:
    await rig.adapter.verify("acme", account, Credentials(access_token=BOT_TOKEN), {})
    for other in ("", "other_bot", "None"):
        with pytest.raises(CredentialsRefused, match="another bot"):
            await rig.adapter.verify("acme", other, Credentials(access_token=BOT_TOKEN), {})
    rig.network.faults.add(Rule(fault=Fault.ANSWER, operation="getMe"))
    with pytest.raises(ProviderDown):
        await rig.adapter.verify("acme", account, Credentials(access_token=BOT_TOKEN), {})


@pytest.mark.parametrize("token", ["a/b", "a?b#c", "a\r\nHost: evil", "", "../x", "1:ü"])
async def test_a_token_cannot_change_the_request_or_reach_a_message(rig: Rig, token: str) -> None:
    post = rig.message(access_token=token)
    seen = await rig.adapter.send(post)
    assert not isinstance(seen, Accepted)
    with pytest.raises((CredentialsRefused, ProviderDown)) as raised:
        await rig.adapter.verify("acme", BOT, Credentials(access_token=token), {})
    for text in (repr(seen), repr(raised.value)):
        assert token not in text or len(token) < 2
    rig.network.problems.clear()


async def test_no_failure_holds_the_token(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    nobody = HttpOrigin("http://127.0.0.1:1", connections=1)
    away = TelegramAdapter(nobody, LIMITS, media=rig.media, clock=rig.clock)
    for media in ((), (rig.file("a.jpg"),)):
        seen = await away.send(rig.message(media=media))
        assert isinstance(seen, NotSent)
        assert BOT_TOKEN not in repr(seen)
    with pytest.raises(ProviderDown) as raised:
        await away.verify("acme", BOT, Credentials(access_token=BOT_TOKEN), {})
    await nobody.close()
    assert BOT_TOKEN not in repr(raised.value) + caplog.text


async def test_nothing_is_ever_looked_up(rig: Rig) -> None:
    assert isinstance(await rig.adapter.look(rig.message()), NoProof)
    limits: Limits = rig.adapter.limits
    assert limits.unknown_deadline == timedelta(0)
    assert rig.network.calls == []
