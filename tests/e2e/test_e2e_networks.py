"""One draft on four networks at one time, through all four services and the fakes; each loses its answer once."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from devstack.networks.facebook import FacebookNetwork
from devstack.networks.faults import Fault, Rule
from devstack.networks.instagram import InstagramNetwork
from devstack.networks.linkedin import VERSION, LinkedIn
from devstack.networks.network import Network
from devstack.networks.telegram import Chat, Telegram
from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import (
    DRAFT_STATE_NEEDS_ATTENTION,
    DRAFT_STATE_PUBLISHED,
    ChannelMedia,
    Draft,
    DraftContent,
    Media,
)
from postflow.drafts.v1.drafts_service_pb2 import ApproveDraftRequest, CreateDraftRequest
from postflow.publisher.v1.notification_pb2 import (
    PUBLISHED_MODE_EACH,
    RECIPIENT_ROLE_ADMIN,
    Preferences,
    Recipient,
    RecipientList,
)
from postflow.publisher.v1.notification_service_pb2 import PutRecipientsRequest
from postflow.publisher.v1.publisher_service_pb2 import RESOLVE_OUTCOME_PUBLISHED, ResolvePostJobRequest
from postflow.publisher.v1.social_account_service_pb2 import ConnectAccountRequest, Credentials
from postflow.target.v1.target_pb2 import Target
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.tenant import Clients, Tenant
from tests.contract.publisher_service.media_rig import MediaRig, media_rig
from tests.e2e.canaries import places
from tests.unit.publisher_service.media_samples import FILM, picture

FACEBOOK_TOKEN, LINKEDIN_TOKEN, BOT = "sandbox-canary-facebook-51c0", "linkedin-canary-51c0", "110201543:canary-51c0"
INSTAGRAM_TOKEN = "sandbox-canary-instagram-51c0"
TOKENS = (FACEBOOK_TOKEN, INSTAGRAM_TOKEN, LINKEDIN_TOKEN, BOT)


@dataclass
class Site:
    facebook: FacebookNetwork
    instagram: InstagramNetwork
    linkedin: LinkedIn
    telegram: Telegram
    media: MediaRig
    stack: Stack
    tenant: Tenant

    @property
    def networks(self) -> tuple[Network, ...]:
        return self.facebook, self.instagram, self.linkedin, self.telegram


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as opened:
        enter = opened.enter_async_context
        facebook, instagram = await enter(FacebookNetwork()), await enter(InstagramNetwork())
        linkedin, telegram = await enter(LinkedIn()), await enter(Telegram())
        linkedin.grant(LINKEDIN_TOKEN, "urn:li:person:782bbtaQ")
        telegram.add_bot(BOT, "example_bot")
        telegram.add_chat(Chat(-1001234567890, username="example"))
        media = await enter(media_rig(tmp_path))
        settings = {
            "FACEBOOK_URL": facebook.url,
            "INSTAGRAM_URL": instagram.url,
            "LINKEDIN_URL": linkedin.url,
            "LINKEDIN_VERSION": VERSION,
            "TELEGRAM_URL": telegram.url,
            "OUTSIDE_PRIVATE_HOSTS": media.server.url.removeprefix("http://"),
            "UNKNOWN_SETTLE": "1",
            "LOOKUP_AGAIN": "1",
            "CHECK_AGAIN": "0.2",
            "RETRY_FIRST": "0.2",
            "NETWORK_TIMEOUT": "5",
            "REQUEST_TIMEOUT": "5",
        }
        environment = {f"POSTFLOW_PUBLISHER_{name}": value for name, value in settings.items()}
        stack = await enter(Stack(tmp_path / "state", environment=environment))
        clients = Clients(stack.targets)
        opened.push_async_callback(clients.close)
        await clients.ready()
        yield Site(facebook, instagram, linkedin, telegram, media, stack, Tenant(clients, "org-networks"))


async def connected(site: Site, account: str, provider: str, external_id: str, token: str) -> None:
    await site.tenant.clients.accounts.ConnectAccount(
        ConnectAccountRequest(
            organization_id=site.tenant.organization_id,
            social_account_id=account,
            provider=provider,
            external_account_id=external_id,
            credentials=Credentials(access_token=token),
        )
    )


TARGETS = (
    Target(social_account_id="page", channel="facebook"),
    Target(social_account_id="grid", channel="instagram_feed"),
    Target(social_account_id="member", channel="linkedin_profile"),
    Target(social_account_id="bot", channel="telegram", destination="@example"),
)


async def notified(site: Site) -> None:
    """The boss gets a mail for each post."""
    await site.tenant.clients.notifications.PutRecipients(
        PutRecipientsRequest(
            organization_id=site.tenant.organization_id,
            recipient_list=RecipientList(
                recipients=[Recipient(email="boss@example.com", role=RECIPIENT_ROLE_ADMIN)],
                preferences=Preferences(published=PUBLISHED_MODE_EACH),
            ),
            request_id="boss",
        )
    )


def subjects(stack: Stack) -> list[str]:
    files = stack.mails.glob("*.eml")
    return [message_from_bytes(file.read_bytes(), policy=policy.default)["Subject"] for file in files]


async def test_one_draft_goes_to_four_networks_that_lose_their_answers(site: Site) -> None:
    tenant, clients = site.tenant, site.tenant.clients
    await notified(site)
    await connected(site, "page", "facebook", "100200", FACEBOOK_TOKEN)
    await connected(site, "grid", "instagram", "300400", INSTAGRAM_TOKEN)
    await connected(site, "member", "linkedin", "782bbtaQ", LINKEDIN_TOKEN)
    await connected(site, "bot", "telegram", "110201543", BOT)
    site.instagram.processing_polls = 4
    photo = site.media.serve("photo", picture("image/jpeg", 1080, 1080))
    film = site.media.serve("film", FILM)
    content = DraftContent(
        text="Hello (world) #one",
        media=[Media(url=photo, alt_text="A red square")],
        channel_media=[ChannelMedia(channel="instagram_feed", media=[Media(url=photo), Media(url=film)])],
    )
    request = CreateDraftRequest(
        organization_id=tenant.organization_id, draft_id="d1", draft=Draft(content=content, targets=TARGETS)
    )
    created = (await clients.drafts.CreateDraft(request)).draft
    assert created.content.media[0].facts.width == 1080
    await clients.drafts.ApproveDraft(ApproveDraftRequest(organization_id=tenant.organization_id, draft_id="d1"))
    for network, operation in zip(site.networks, ("feed", "media_publish", "post", "sendFile"), strict=True):
        network.faults.add(Rule(fault=Fault.RESET, effect=True, operation=operation))
    await tenant.schedule_at("d1", SystemClock().now() + timedelta(seconds=2))

    draft = await tenant.until("d1", DRAFT_STATE_NEEDS_ATTENTION, within=60)
    states = {each.target.channel: each for each in draft.target_states}
    assert {channel: each.post_job_state for channel, each in states.items()} == {
        "facebook": "PUBLISHED",
        "instagram_feed": "PUBLISHED",
        "linkedin_profile": "PUBLISHED",
        "telegram": "NEEDS_ATTENTION",
    }
    assert states["facebook"].external_url.startswith("https://")
    assert states["linkedin_profile"].external_url.startswith("https://www.linkedin.com/feed/update/urn:li:")
    assert [len(network.effects) for network in site.networks] == [1, 1, 1, 1]
    assert [network.problems for network in site.networks] == [[], [], [], []]

    await clients.publisher.ResolvePostJob(
        ResolvePostJobRequest(
            organization_id=tenant.organization_id,
            post_job_id=states["telegram"].post_job_id,
            outcome=RESOLVE_OUTCOME_PUBLISHED,
            external_url="https://t.me/example/1",
            resolver="ann",
        )
    )
    await tenant.until("d1", DRAFT_STATE_PUBLISHED, within=20)

    async def all_notified() -> bool:
        assert sorted(subjects(site.stack)) == [
            "Please check a post on bot (telegram)",
            "Published on bot (telegram)",
            "Published on grid (instagram_feed)",
            "Published on member (linkedin_profile)",
            "Published on page (facebook)",
        ]
        return True

    await eventually(all_notified, within=60)
    # The text and the address are in databases, stream and mails, where the tokens would be, too.
    found = await places(site.stack, ["Hello (world) #one", "boss@example.com", *TOKENS])
    assert found["Hello (world) #one"] >= {"postgres", "nats"}
    assert found["boss@example.com"] >= {"postgres", "mail"}
    assert {token: found[token] for token in TOKENS} == {token: set() for token in TOKENS}
