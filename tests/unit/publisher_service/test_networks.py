"""Each network is made with its own part of the settings."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.providers.provider import Providers
from publisher_service.networks import Networks
from publisher_service.settings import Settings
from servicekit.run.settings import load
from testkit.clocks import FrozenClock
from tests.contract.publisher_service.media_folder import MediaFolder

BACK = "https://app.example.com/connected"
SETTINGS = {
    "POSTFLOW_DATABASE_URL": "postgresql://u:p@h/d",
    "POSTFLOW_PUBLISHER_FACEBOOK_APP_ID": "1",
    "POSTFLOW_PUBLISHER_FACEBOOK_MORE_SCOPES": "pages_manage_engagement business_management",
    "POSTFLOW_PUBLISHER_INSTAGRAM_MORE_SCOPES": "instagram_manage_comments",
}
FACEBOOK = "pages_show_list,pages_read_engagement,pages_manage_posts,pages_manage_engagement,business_management"
INSTAGRAM = "instagram_basic,instagram_content_publish,pages_show_list,pages_read_engagement,instagram_manage_comments"


@pytest.mark.parametrize("app", [{}, {"POSTFLOW_PUBLISHER_INSTAGRAM_APP_ID": "2"}])
async def test_meta_is_asked_for_the_permissions_of_each_network(tmp_path: Path, app: Mapping[str, str]) -> None:
    settings = load(Settings, "publisher", {**SETTINGS, **app})
    clock = FrozenClock()
    networks = Networks(settings, media=MediaFolder(tmp_path), outside=Outside(private_hosts=frozenset()), clock=clock)
    providers = Providers(networks.adapters, clock)
    asked = {
        name: parse_qs(urlsplit(providers[name].authorization_url("state", "challenge", BACK)).query)["scope"]
        for name in ("facebook", "instagram")
    }
    await networks.close()
    assert asked == {"facebook": [FACEBOOK], "instagram": [INSTAGRAM]}
