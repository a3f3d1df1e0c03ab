"""Settings that would keep the process from sending are refused before it starts."""

import pytest

from publisher_service.settings import Settings
from servicekit.run.settings import SettingsError, load

URL = {"POSTFLOW_DATABASE_URL": "postgresql://u:p@h/d"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("SENDERS", "0"),
        ("PUBLISH_DURABLES", "65"),
        ("DATABASE_CONNECTIONS", "0"),
        ("REQUEST_TIMEOUT", "0"),
        ("MEDIA_FETCHES", "0"),
        ("MEDIA_SPOOL_BYTES", "0"),
        ("SWEEP_PERIOD", "0"),
        ("SANDBOX_URL", "nonsense"),
        ("OUTSIDE_PRIVATE_HOSTS", "localhost"),
        ("LISTEN", "127.0.0.1:99999"),
        ("METRICS_LISTEN", "localhost"),
    ],
)
def test_a_setting_that_would_keep_posts_unsent_is_refused(field: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^POSTFLOW_PUBLISHER_{field}: "):
        load(Settings, "publisher", URL | {f"POSTFLOW_PUBLISHER_{field}": value})


def test_the_defaults_are_accepted_when_set() -> None:
    defaults = load(Settings, "publisher", URL)
    given = {"LISTEN": defaults.listen, "METRICS_LISTEN": defaults.metrics_listen, "SANDBOX_URL": defaults.sandbox_url}
    assert load(Settings, "publisher", URL | {f"POSTFLOW_PUBLISHER_{name}": value for name, value in given.items()})


def test_every_file_fits_into_the_share_of_one_organization() -> None:
    spool = {"POSTFLOW_PUBLISHER_MEDIA_SPOOL_BYTES": "200000000"}
    caps = load(Settings, "publisher", URL | spool).media_caps
    assert (caps.image, caps.video, caps.document) == (50_000_000, 100_000_000, 100_000_000)
