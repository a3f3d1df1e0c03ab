"""Scenes of mail, messages and webhooks."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from devstack.networks.unipile import DISCONNECTED, KEY, LINKEDIN, MAILBOX, Unipile, member_id
from devstack.networks.webhook_receiver import SECRET, WebhookReceiver
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.urls import read_private_hosts
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.unipile import UnipileAdapter
from publisher_service.adapters.providers.webhook import WebhookAdapter
from publisher_service.domain.outcome import NoProof
from servicekit.clock import SystemClock
from servicekit.run.settings import Secret
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.scene import LIMITS, MakeScene, Scene, named


@named("webhook")
@asynccontextmanager
async def webhook_scene(_folder: Path) -> AsyncIterator[Scene]:
    async with WebhookReceiver() as network:
        outside = Outside(private_hosts=read_private_hosts(network.url.removeprefix("http://")))
        yield Scene(
            network=network,
            adapter=WebhookAdapter(outside, LIMITS, clock=SystemClock()),
            post=Post(
                external_account_id="hook",
                access_token=SECRET,
                channel="webhook",
                destination="",
                text="",
                idempotency_key="",
                organization_id="acme",
                settings={"url": f"{network.url}/hook"},
            ),
            publish="receive",
            any_2xx_accepts=True,
        )


@asynccontextmanager
async def unipile_scene(folder: Path, post: Post, publish: str, look: str, **facts: Any) -> AsyncIterator[Scene]:
    async with Unipile() as network:
        origin = HttpOrigin(network.url, connections=8)
        try:
            yield Scene(
                network=network,
                adapter=UnipileAdapter(origin, LIMITS, api_key=Secret(KEY), media=MediaFolder(folder)),
                post=post,
                publish=publish,
                look=look,
                revoked={"external_account_id": DISCONNECTED},
                # What is not listed may be listed later.
                findings={"absent": (NoProof,)},
                **facts,
            )
        finally:
            await origin.close()


def unipile_post(account: str, channel: str, destination: str, title: str = "") -> Post:
    return Post(
        external_account_id=account,
        access_token="token-that-nobody-reads",
        channel=channel,
        destination=destination,
        title=title,
        text="",
        idempotency_key="",
        organization_id="acme",
    )


@named("unipile-email")
def unipile_email(folder: Path) -> AbstractAsyncContextManager[Scene]:
    """Opens a scene in which the vendor remembers the key of a mail."""
    post = unipile_post(MAILBOX, "email", "grace@example.org", "Hello")
    return unipile_scene(folder, post, "send_email", "list_emails", is_repeatable=True)


@named("unipile-message")
def unipile_message(folder: Path) -> AbstractAsyncContextManager[Scene]:
    post = unipile_post(LINKEDIN, "linkedin_message", member_id(LINKEDIN, "grace-hopper"))
    return unipile_scene(folder, post, "start_chat", "list_messages")


@named("unipile-inmail")
def unipile_inmail(folder: Path) -> AbstractAsyncContextManager[Scene]:
    post = unipile_post(LINKEDIN, "linkedin_inmail", "alan-turing", "An offer")
    return unipile_scene(folder, post, "start_chat", "list_messages")


@named("unipile-connection")
def unipile_connection(folder: Path) -> AbstractAsyncContextManager[Scene]:
    """Opens a scene in which a second invitation is refused."""
    post = unipile_post(LINKEDIN, "linkedin_connection", "alan-turing")
    return unipile_scene(folder, post, "invite", "list_invitations", is_repeatable=True)


MAIL_SCENES: Sequence[MakeScene] = (
    webhook_scene,
    unipile_email,
    unipile_message,
    unipile_inmail,
    unipile_connection,
)
