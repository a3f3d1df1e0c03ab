"""Checks of a content before it is saved or approved: its media is fetched, and the rules of its channels are kept.

The calls go to Publisher, before any transaction. What cannot be found out is left unchecked: such a draft is saved,
and approved only once the bytes of its media are known.
"""

from collections.abc import Sequence
from typing import Protocol

from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.application.known_rules import KnownRules
from drafts_service.domain.account import Providers
from drafts_service.domain.channel_rules import Rules, require_within_rules
from drafts_service.domain.content import Content
from drafts_service.domain.media import Inspected, pinned, require_usable
from drafts_service.domain.target import Target


class MediaInspector(Protocol):
    async def inspect(self, organization_id: str, urls: Sequence[str]) -> Inspected:
        """Leaves out what Publisher does not answer for soon."""
        ...


class ContentCheck:
    def __init__(self, *, obstacles: AccountObstacles, rules: KnownRules, media: MediaInspector) -> None:
        self._obstacles = obstacles
        self._rules = rules
        self._media = media

    async def __call__(self, organization_id: str, content: Content, targets: Sequence[Target]) -> Content:
        """Returns the content with what was found about its media. Raises MEDIA_REFUSED or CONTENT_BREAKS_RULES."""
        checked = await self.with_media(organization_id, content)
        rules = await self._rules()
        accounts = {target.social_account_id for target in targets}
        providers = await self._obstacles.learn(organization_id, accounts)
        if rules is not None:
            require_within_rules(checked, targets, providers, rules)
        return checked

    async def with_media(self, organization_id: str, content: Content) -> Content:
        """Returns the content with the facts of its media, as far as they are known soon. Raises MEDIA_REFUSED."""
        found = await self.inspect(organization_id, list(dict.fromkeys(each.url for each in content.all_media)))
        require_usable(content, found)
        return pinned(content, found)

    async def inspect(self, organization_id: str, urls: Sequence[str]) -> Inspected:
        """Leaves out what Publisher does not answer for soon."""
        return await self._media.inspect(organization_id, urls) if urls else {}

    async def rules(self) -> Rules | None:
        return await self._rules()

    async def learn(self, organization_id: str, targets: Sequence[Target]) -> Providers:
        """Has the accounts of the targets known to a transaction that follows."""
        return await self._obstacles.learn(organization_id, {target.social_account_id for target in targets})
