"""A draft goes to a webhook and by e-mail through all four services: each account has settings of its own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.faults import Fault, Rule
from devstack.networks.webhook_receiver import SECRET, WebhookReceiver
from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED, Draft, DraftContent
from postflow.drafts.v1.drafts_service_pb2 import ApproveDraftRequest, CreateDraftRequest
from postflow.publisher.v1.social_account_service_pb2 import ConnectAccountRequest, Credentials, GetAccountRequest
from postflow.target.v1.target_pb2 import Target
from servicekit.clock import SystemClock
from servicekit.faults import Fault as Refusal
from servicekit.rpc import calling
from testkit.smtp_server import SmtpServer
from testkit.stack.tenant import Clients, Tenant
from tests.e2e.canaries import places

FROM, PASSWORD = "shop@example.com", "mail-canary-7d10"


@dataclass
class Site:
    hook: WebhookReceiver
    mail: SmtpServer
    stack: Stack
    tenant: Tenant

    async def connect(self, account: str, provider: str, external_id: str, token: str, **settings: str) -> None:
        await self.tenant.clients.accounts.ConnectAccount(
            ConnectAccountRequest(
                organization_id=self.tenant.organization_id,
                social_account_id=account,
                provider=provider,
                external_account_id=external_id,
                credentials=Credentials(access_token=token),
                settings=settings,
            )
        )

    async def settings(self, account: str) -> Mapping[str, str]:
        request = GetAccountRequest(organization_id=self.tenant.organization_id, social_account_id=account)
        return dict((await self.tenant.clients.accounts.GetAccount(request)).social_account.settings)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as opened:
        hook = await opened.enter_async_context(WebhookReceiver())
        mail = await opened.enter_async_context(SmtpServer(users={FROM: PASSWORD}))
        environment = {
            "POSTFLOW_PUBLISHER_OUTSIDE_PRIVATE_HOSTS": f"{hook.url.removeprefix('http://')},localhost:{mail.port}",
            "POSTFLOW_PUBLISHER_UNKNOWN_SETTLE": "1",
            "POSTFLOW_PUBLISHER_RETRY_FIRST": "0.2",
        }
        stack = await opened.enter_async_context(Stack(tmp_path / "state", environment=environment))
        clients = Clients(stack.targets)
        opened.push_async_callback(clients.close)
        await clients.ready()
        yield Site(hook, mail, stack, Tenant(clients, "org-messages"))


async def test_a_post_reaches_a_webhook_and_a_mailbox_once(site: Site) -> None:
    tenant = site.tenant
    await site.connect("hook", "webhook", "hook", SECRET, url=f"{site.hook.url}/hook")
    await site.connect(
        "mail", "smtp", FROM, PASSWORD, host="localhost", port=str(site.mail.port), security="plain", from_name="Shop"
    )
    assert (await site.settings("mail"))["from_name"] == "Shop"
    site.hook.faults.add(Rule(fault=Fault.RESET, effect=True))
    targets = (
        Target(social_account_id="hook", channel="webhook"),
        Target(social_account_id="mail", channel="email", destination="grace@example.org"),
    )
    draft = Draft(content=DraftContent(text="Hello", title="News"), targets=targets)
    request = CreateDraftRequest(organization_id=tenant.organization_id, draft_id="d1", draft=draft)
    await tenant.clients.drafts.CreateDraft(request)
    await tenant.clients.drafts.ApproveDraft(ApproveDraftRequest(organization_id=tenant.organization_id, draft_id="d1"))
    await tenant.schedule_at("d1", SystemClock().now() + timedelta(seconds=2))
    await tenant.until("d1", DRAFT_STATE_PUBLISHED, within=60)
    assert len(site.hook.effects) == 1
    assert site.hook.problems == []
    (kept,) = site.mail.kept
    assert (kept.recipients, kept.message["Subject"]) == (("grace@example.org",), "News")
    assert await places(site.stack, [PASSWORD, SECRET]) == {PASSWORD: set(), SECRET: set()}


async def test_settings_that_are_wrong_are_refused_by_their_name(site: Site) -> None:
    with pytest.raises(Refusal) as refused, calling():
        await site.connect("mail", "smtp", FROM, PASSWORD, host="localhost", port="22", security="plain")
    assert [each.field for each in refused.value.violations] == ["settings.port"]
    with pytest.raises(Refusal) as private, calling():
        await site.connect("hook", "webhook", "hook", SECRET, url="http://10.0.0.1/hook")
    assert [each.field for each in private.value.violations] == ["settings.url"]
