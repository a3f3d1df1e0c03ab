"""CreateSubscription makes a secret that is returned once and stored sealed."""

import pytest

from publisher_service.adapters.vault import CredentialsUnreadable
from publisher_service.adapters.webhook_secrets import open_secret
from servicekit.faults import InvalidField
from testkit.refusals import fault_of, fields_at_fault
from tests.usecase.publisher_service.notified import Notified


async def test_the_secret_is_stored_sealed_and_bound_to_its_webhook(notified: Notified) -> None:
    subscription, secret = await notified.subscribe()
    assert secret.reveal().startswith("whsec_")
    (row,) = await notified.rows("select secret from webhook_subscription")
    assert secret.reveal().removeprefix("whsec_").encode() not in row.secret
    opened = open_secret(notified.vault, row.secret, organization_id="acme", subscription_id=subscription.id)
    assert opened == secret
    with pytest.raises(CredentialsUnreadable):
        open_secret(notified.vault, row.secret, organization_id="acme", subscription_id="w2")


async def test_an_id_is_generated_or_given_once(notified: Notified) -> None:
    (first, _), (second, _) = await notified.subscribe(""), await notified.subscribe("")
    assert first.id != second.id
    assert (await fault_of(notified.subscribe(first.id))).reason == "SUBSCRIPTION_EXISTS"
    await notified.subscribe(first.id, organization="other")


async def test_an_organization_has_twenty_webhooks_at_most(notified: Notified) -> None:
    for number in range(20):
        await notified.subscribe(f"w{number}")
    assert (await fault_of(notified.subscribe("more"))).reason == "SUBSCRIPTION_LIMIT_REACHED"
    await notified.subscribe("more", organization="other")
    assert len(await notified.read.subscriptions("acme", after="", limit=99)) == 20


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nonsense", "URL_MALFORMED"),
        ("http://example.com/hook", "URL_NOT_HTTPS"),
        ("https://example.com:8443/hook", "URL_HAS_PORT"),
        ("https://ann:secret@example.com/", "URL_HAS_CREDENTIALS"),
        ("https://169.254.169.254/latest", "URL_IP_ADDRESS"),
        ("https://localhost/hook", "URL_PRIVATE"),
        ("https://example.com/a\r\nX: y", "URL_MALFORMED"),
    ],
)
async def test_a_url_that_must_not_be_called_is_refused(notified: Notified, url: str, reason: str) -> None:
    refused = await fault_of(notified.subscribe(url=url))
    assert isinstance(refused, InvalidField)
    assert (refused.reason, fields_at_fault(refused)) == (reason, ["subscription.url"])
    assert await notified.read.subscriptions("acme", after="", limit=9) == []
