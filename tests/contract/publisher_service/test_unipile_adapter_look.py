"""A look at Unipile finds a message only if exactly one fits, and denies it only if a complete list has none."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from devstack.networks.faults import Fault, Rule
from devstack.networks.unipile import LINKEDIN, Unipile, member_id
from publisher_service.adapters.providers.adapter import Post
from publisher_service.domain.outcome import AuthRefused, Finding, Found, NoProof
from servicekit.clock import SystemClock
from tests.contract.publisher_service.scene import MakeScene, Scene
from tests.contract.publisher_service.scenes_mail import (
    unipile_connection,
    unipile_email,
    unipile_inmail,
    unipile_message,
)

ALL = [unipile_email, unipile_message, unipile_inmail, unipile_connection]
Change = Callable[[Unipile], None]


@asynccontextmanager
async def opened(make: MakeScene, folder: Path) -> AsyncIterator[tuple[Scene, Unipile]]:
    async with make(folder) as scene:
        assert isinstance(scene.network, Unipile)
        yield scene, scene.network
        assert scene.network.problems == []


async def lost(scene: Scene, text: str = "hello", **changes: Any) -> Post:
    """Returns a post that is out, though nobody was answered."""
    post = replace(await scene.ready(text), **changes)
    scene.network.faults.add(Rule(fault=Fault.RESET, effect=True, operation=scene.publish))
    await scene.adapter.send(post)
    assert len(scene.network.effects) == 1
    return post


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.name)
async def test_a_lost_message_is_found_with_its_text_and_link(tmp_path: Path, make: MakeScene) -> None:
    async with opened(make, tmp_path) as (scene, network):
        text = "  hello,\r\n  world  "
        link = "" if make is unipile_connection else "https://example.com/x"
        seen = await scene.adapter.look(await lost(scene, text, link=link))
        assert isinstance(seen, Found), seen
        assert seen.external_id == network.effects[0]["id"]


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.name)
async def test_nothing_is_looked_for_that_is_not_known(tmp_path: Path, make: MakeScene) -> None:
    async with opened(make, tmp_path) as (scene, network):
        post = await lost(scene)
        calls = len(network.calls)
        assert isinstance(await scene.adapter.look(replace(post, since=None)), NoProof)
        unknown = {"title": ""} if make is unipile_email else {"handle": "", "destination": "alan-turing"}
        assert isinstance(await scene.adapter.look(replace(post, **unknown)), NoProof)  # type: ignore[arg-type]
        assert len(network.calls) == calls


@pytest.mark.parametrize("make", [unipile_email, unipile_message, unipile_inmail], ids=lambda make: make.name)
@pytest.mark.parametrize("change", ["older", "of another text", "to another person", "of another account"])
async def test_what_is_not_the_message_is_not_taken_for_it(tmp_path: Path, make: MakeScene, change: str) -> None:
    async with opened(make, tmp_path) as (scene, network):
        post = await lost(scene)
        (item,) = network.emails or network.messages
        if change == "older":
            time = (SystemClock().now() - timedelta(minutes=5)).isoformat()
            item["date"] = item["timestamp"] = time
        elif change == "of another text":
            item["subject"] = item["text"] = "another"
        elif change == "to another person":
            item["to_attendees"] = [{"identifier": "eve@example.org"}]
            for chat in network.chats.values():
                chat["attendee_provider_id"] = member_id(LINKEDIN, "eve")
        else:
            item["account_id"] = "acc-other"
        assert isinstance(await scene.adapter.look(post), NoProof)


def twice(network: Unipile) -> None:
    for items in (network.emails, network.messages, network.invitations):
        items.extend([{**each, "id": "other", "provider_id": "other"} for each in items])


def unnamed(network: Unipile) -> None:
    for each in (*network.emails, *network.messages, *network.invitations):
        each["id"] = each["provider_id"] = "\0"


def as_draft(network: Unipile) -> None:
    network.emails[0]["role"] = "drafts"
    for chat in network.chats.values():
        del chat["attendee_provider_id"]
    for each in network.invitations:
        each["invitation_text"] = "another"


def as_reference(network: Unipile) -> None:
    del network.emails[0]["subject"], network.emails[0]["to_attendees"]


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.name)
@pytest.mark.parametrize("change", [twice, unnamed], ids=lambda change: change.__name__)
async def test_what_cannot_be_distinguished_proves_nothing(tmp_path: Path, make: MakeScene, change: Change) -> None:
    async with opened(make, tmp_path) as (scene, network):
        post = await lost(scene)
        change(network)
        assert isinstance(await scene.adapter.look(post), NoProof)


@pytest.mark.parametrize("change", [as_draft, as_reference], ids=lambda change: change.__name__)
async def test_a_mail_that_is_not_shown_as_sent_proves_nothing(tmp_path: Path, change: Change) -> None:
    async with opened(unipile_email, tmp_path) as (scene, network):
        post = await lost(scene)
        change(network)
        network.faults.add(Rule(fault=Fault.ANSWER, status=200, body=listed(network.emails)))
        assert isinstance(await scene.adapter.look(post), NoProof)


def listed(items: list[dict[str, Any]], cursor: object = None) -> dict[str, Any]:
    return {"object": "List", "items": items, "cursor": cursor}


async def test_pages_are_read_to_their_end(tmp_path: Path) -> None:
    async with opened(unipile_message, tmp_path) as (scene, network):
        post = await lost(scene)
        (sent,) = network.messages
        network.messages[:0] = [{**sent, "text": f"other {n}"} for n in range(6)]
        network.per_page = 2
        assert isinstance(await scene.adapter.look(post), Found)
        network.messages[:0] = [{**sent, "text": f"other {n}"} for n in range(20)]
        assert isinstance(await scene.adapter.look(post), NoProof), "too many to be read"


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.ANSWER, Fault.HTML, Fault.ERROR_IN_200, Fault.ENDLESS])
async def test_a_chat_that_cannot_be_read_proves_nothing(tmp_path: Path, fault: Fault) -> None:
    async with opened(unipile_message, tmp_path) as (scene, network):
        post = await lost(scene)
        network.faults.add(Rule(fault=fault, operation="get_chat", count=0))
        assert isinstance(await scene.adapter.look(post), NoProof)


async def test_the_same_text_to_many_is_not_looked_through(tmp_path: Path) -> None:
    async with opened(unipile_message, tmp_path) as (scene, network):
        post = await lost(scene)
        network.messages.extend([{**network.messages[0], "id": f"m-{n}"} for n in range(9)])
        assert isinstance(await scene.adapter.look(post), NoProof)
        assert "get_chat" not in {name for name, _ in network.calls}


async def test_a_message_that_we_received_is_not_our_own(tmp_path: Path) -> None:
    async with opened(unipile_message, tmp_path) as (scene, network):
        post = await lost(scene)
        network.messages[0]["is_sender"] = 0
        assert isinstance(await scene.adapter.look(post), NoProof)


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.name)
async def test_what_is_listed_late_is_found_then(tmp_path: Path, make: MakeScene) -> None:
    async with opened(make, tmp_path) as (scene, network):
        post = await lost(scene)
        lists = (network.emails, network.messages, network.invitations)
        kept = [list(each) for each in lists]
        for each in lists:
            each.clear()
        assert isinstance(await scene.adapter.look(post), NoProof), "not sent again"
        for each, items in zip(lists, kept, strict=True):
            each.extend(items)
        assert isinstance(await scene.adapter.look(post), Found)


async def test_an_invitation_that_is_not_pending_proves_nothing(tmp_path: Path) -> None:
    async with opened(unipile_connection, tmp_path) as (scene, network):
        post = await lost(scene)
        network.invitations[0]["parsed_datetime"] = "2026-01-01T00:00:00.000Z"
        assert isinstance(await scene.adapter.look(post), NoProof)
        network.accept(network.effects[0]["id"])
        assert isinstance(await scene.adapter.look(post), NoProof)


async def test_a_mail_that_is_sent_again_by_mistake_is_sent_once(tmp_path: Path) -> None:
    """The vendor remembers the key until it restarts: so a list that lags does no harm, mostly."""
    async with opened(unipile_email, tmp_path) as (scene, network):
        post = await lost(scene)
        await scene.adapter.send(post)
        assert len(network.effects) == 1
        network.restart()
        await scene.adapter.send(post)
        assert len(network.effects) == 2


async def test_a_lost_account_is_called_so(tmp_path: Path) -> None:
    async with opened(unipile_email, tmp_path) as (scene, network):
        post = await lost(scene)
        body = {"type": "errors/disconnected_account", "title": "Disconnected account"}
        network.faults.add(Rule(fault=Fault.ANSWER, status=401, body=body))
        assert isinstance(await scene.adapter.look(post), AuthRefused)


BODIES: list[object] = [
    [], "", None, {"items": None}, {"items": {}}, {"items": [1]}, {"items": [], "cursor": 1}, {"items": [[]]},
]  # fmt: skip


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.name)
@pytest.mark.parametrize("body", BODIES, ids=repr)
async def test_a_list_that_cannot_be_read_proves_nothing(tmp_path: Path, make: MakeScene, body: object) -> None:
    async with opened(make, tmp_path) as (scene, network):
        post = await scene.ready()
        network.faults.add(Rule(fault=Fault.ANSWER, status=200, body=body, operation=scene.look))
        seen: Finding = await scene.adapter.look(post)
        assert isinstance(seen, NoProof)
