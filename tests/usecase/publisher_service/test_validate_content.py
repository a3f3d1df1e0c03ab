"""ValidateContent knows the rules by the account of each target, and tells nothing of other organizations."""

import pytest

from channels.rules import ChannelRules, TextRule
from publisher_service.application.validate_content import ValidateContent
from publisher_service.domain.content import Content
from publisher_service.domain.post_job import Target
from tests.usecase.publisher_service.replica import Replica

PAGE = Target(social_account_id="page", channel="facebook")
CONTENT = Content(text="too long", channel_texts={})


@pytest.fixture
async def validate(replica: Replica) -> ValidateContent:
    provider = (await replica.connect("page")).provider
    return ValidateContent(
        database=replica.database, rules={provider: {"facebook": ChannelRules(text=TextRule(most=3))}}
    )


async def test_an_account_has_the_rules_of_its_provider(validate: ValidateContent) -> None:
    (found,) = await validate("acme", CONTENT, [PAGE])
    assert [each.field for each in found.violations] == ["content.text"]


async def test_an_account_of_another_organization_is_not_found(validate: ValidateContent) -> None:
    (found,) = await validate("other", CONTENT, [PAGE])
    assert (found.unchecked_reason, found.provider) == ("ACCOUNT_NOT_FOUND", "")
