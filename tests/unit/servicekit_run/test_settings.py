import json
import logging
import pickle
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

import pytest

from servicekit.run import Environment, ProcessSettings, Secret, SettingsError
from servicekit.run.settings import load


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    database_url: Secret
    nats_url: str = "nats://127.0.0.1:4222"
    workers: int = 4
    share: float = 0.5
    eager: bool = False
    lead: timedelta = timedelta(seconds=30)
    folder: Path = Path("/var/lib")
    colour: Colour = Colour.RED
    limit: int | None = None
    names: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError("workers must be at least 1")


URL = {"POSTFLOW_DATABASE_URL": "postgresql://me:hunter2@host/db"}


def test_every_type_is_parsed_and_the_rest_has_its_default() -> None:
    loaded = load(
        Settings,
        "queue",
        URL
        | {
            "POSTFLOW_QUEUE_WORKERS": "9",
            "POSTFLOW_QUEUE_SHARE": "0.25",
            "POSTFLOW_QUEUE_EAGER": "True",
            "POSTFLOW_QUEUE_LEAD": "1.5",
            "POSTFLOW_QUEUE_FOLDER": "/srv",
            "POSTFLOW_QUEUE_COLOUR": "blue",
            "POSTFLOW_QUEUE_LIMIT": "3",
        },
    )
    assert loaded == Settings(
        database_url=Secret("postgresql://me:hunter2@host/db"),
        workers=9,
        share=0.25,
        eager=True,
        lead=timedelta(seconds=1.5),
        folder=Path("/srv"),
        colour=Colour.BLUE,
        limit=3,
    )


def test_a_variable_of_the_service_overrides_the_shared_one() -> None:
    environ = URL | {
        "POSTFLOW_NATS_URL": "all",
        "POSTFLOW_QUEUE_NATS_URL": "mine",
        "POSTFLOW_DRAFTS_NATS_URL": "theirs",
    }
    assert load(Settings, "queue", environ).nats_url == "mine"
    assert load(Settings, "publisher", environ).nats_url == "all"


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("WORKERS", "many"),
        ("WORKERS", ""),
        ("WORKERS", "1.5"),
        ("SHARE", "nan"),
        ("SHARE", "inf"),
        ("EAGER", "maybe"),
        ("LEAD", "-1"),
        ("LEAD", "30s"),
        ("LEAD", "1e300"),
        ("COLOUR", "green"),
        ("LIMIT", "x"),
    ],
)
def test_a_bad_value_is_one_error_that_names_the_variable(variable: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"^POSTFLOW_QUEUE_{variable}: '{text}' ") as caught:
        load(Settings, "queue", URL | {f"POSTFLOW_QUEUE_{variable}": text})
    assert "\n" not in str(caught.value)


def test_all_wrong_variables_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        load(Settings, "queue", {"POSTFLOW_QUEUE_WORKERS": "x", "POSTFLOW_SHARE": "y"})
    reported = str(caught.value)
    assert "POSTFLOW_QUEUE_DATABASE_URL (or POSTFLOW_DATABASE_URL) is not set" in reported
    assert "POSTFLOW_QUEUE_WORKERS" in reported
    assert "POSTFLOW_SHARE" in reported


def test_a_refusal_by_the_dataclass_is_a_settings_error_too() -> None:
    with pytest.raises(SettingsError, match="workers must be at least 1"):
        load(Settings, "queue", URL | {"POSTFLOW_QUEUE_WORKERS": "0"})


def test_an_unread_variable_is_logged_by_name_only(caplog: pytest.LogCaptureFixture) -> None:
    environ = URL | {"POSTFLOW_QUEUE_WORKER": "hunter3", "POSTFLOW_DRAFTS_WORKER": "x"}
    load(Settings, "queue", environ)
    assert "POSTFLOW_QUEUE_WORKER " in caplog.text
    assert "hunter3" not in caplog.text
    assert "POSTFLOW_DRAFTS" not in caplog.text


def test_the_target_variable_of_a_service_is_not_unknown(caplog: pytest.LogCaptureFixture) -> None:
    load(Settings, "queue", URL | {"POSTFLOW_QUEUE_TARGET": "127.0.0.1:50052"})
    assert caplog.text == ""


def test_a_field_of_a_type_without_a_parser_is_refused() -> None:
    with pytest.raises(TypeError, match="no parser"):
        load(Settings, "queue", URL | {"POSTFLOW_QUEUE_NAMES": "a,b"})


def test_the_settings_of_every_process_are_inherited() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Mine(ProcessSettings):
        listen: str = "127.0.0.1:50052"
        metrics_listen: str = "127.0.0.1:9465"

    loaded = load(Mine, "queue", {"POSTFLOW_ENVIRONMENT": "production", "POSTFLOW_QUEUE_LISTEN": "127.0.0.1:0"})
    assert (loaded.environment, loaded.listen) == (Environment.PRODUCTION, "127.0.0.1:0")


def test_only_reveal_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret("hunter2")
    logging.getLogger("test").warning("%s %r %s", secret, secret, [secret])
    shown = f"{secret} {secret:>20} {secret!r} {secret!s} {[secret]} {caplog.text} {json.dumps(secret, default=str)}"
    assert "hunter2" not in shown
    assert secret.reveal() == "hunter2"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert not hasattr(secret, "__dict__")


def test_an_invalid_secret_is_not_shown_in_the_error() -> None:
    assert "hunter2" not in repr(load(Settings, "queue", URL))
