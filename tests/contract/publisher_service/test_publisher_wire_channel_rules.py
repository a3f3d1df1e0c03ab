"""Drafts reads from ListChannels the very rules that Publisher's adapters declare."""

from collections.abc import Mapping

import pytest

from channels.rules import ChannelRules
from drafts_service.wire.rules import rules as rules_read
from postflow.publisher.v1.publisher_service_pb2 import ListChannelsResponse
from publisher_service.adapters.providers.linkedin_rules import LINKEDIN_RULES
from publisher_service.adapters.providers.mail_rules import SMTP_RULES
from publisher_service.adapters.providers.meta_rules import FACEBOOK_RULES, INSTAGRAM_RULES
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.adapters.providers.telegram_rules import TELEGRAM_RULES
from publisher_service.adapters.providers.unipile_rules import UNIPILE_RULES
from publisher_service.adapters.providers.webhook_rules import WEBHOOK_RULES
from publisher_service.wire.channel_rules import list_channels_response

RULES: Mapping[str, Mapping[str, ChannelRules]] = {
    "facebook": FACEBOOK_RULES,
    "instagram": INSTAGRAM_RULES,
    "linkedin": {"linkedin_profile": LINKEDIN_RULES},
    "sandbox": SANDBOX_RULES,
    "smtp": SMTP_RULES,
    "telegram": {"telegram": TELEGRAM_RULES},
    "unipile": UNIPILE_RULES,
    "webhook": WEBHOOK_RULES,
}


@pytest.mark.parametrize("provider", RULES)
def test_rules_are_read_as_they_are_declared(provider: str) -> None:
    answer = list_channels_response([(provider, "KEYED", RULES[provider])])
    assert rules_read(ListChannelsResponse.FromString(answer.SerializeToString())) == {provider: RULES[provider]}
