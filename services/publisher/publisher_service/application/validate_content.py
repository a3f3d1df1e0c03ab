"""ValidateContent: checks a content against the rules of its targets' channels, and stores nothing."""

from collections.abc import Mapping, Sequence

from channels.rules import ChannelRules
from publisher_service.adapters.postgres.accounts import providers_of
from publisher_service.domain.content import Content
from publisher_service.domain.post_job import Target
from publisher_service.domain.validation import Validation, validations
from servicekit.pg.database import Database


class ValidateContent:
    def __init__(self, *, database: Database, rules: Mapping[str, Mapping[str, ChannelRules]]) -> None:
        """`rules` are by provider and channel."""
        self._database = database
        self._rules = rules

    async def __call__(self, organization_id: str, content: Content, targets: Sequence[Target]) -> list[Validation]:
        accounts = {(organization_id, target.social_account_id) for target in targets}
        async with self._database.read_session() as session:
            providers = await providers_of(session, accounts)
        known = {account_id: provider for (_, account_id), provider in providers.items()}
        return validations(content, targets, known, self._rules)
