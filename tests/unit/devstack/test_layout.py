import os
import socket

import pytest

from devstack.errors import PortInUse, StackError
from devstack.layout import FREE_PORTS, SERVICES, WELL_KNOWN_PORTS, Layout

OWN = ("postgresql://own", "nats://own", "key")


def test_the_well_known_ports_are_the_documented_ones() -> None:
    layout = Layout(WELL_KNOWN_PORTS, {})
    assert layout.targets == {
        "schedule": "127.0.0.1:50051",
        "queue": "127.0.0.1:50052",
        "drafts": "127.0.0.1:50053",
        "publisher": "127.0.0.1:50054",
    }
    assert list(layout.metrics.values()) == [f"127.0.0.1:{port}" for port in range(9464, 9468)]
    assert layout.sandbox_url == "http://127.0.0.1:50060"


def test_free_ports_are_all_different_and_known_at_once() -> None:
    layout = Layout(FREE_PORTS, {})
    addresses = [*layout.listen.values(), *layout.metrics.values(), layout.sandbox_url]
    assert len(set(addresses)) == len(addresses)
    assert not any(address.endswith(":0") for address in addresses)


def test_a_service_gets_everything_it_needs_and_no_password_of_another() -> None:
    given = {"POSTFLOW_DRAFTS_DATABASE_URL": "postgresql://drafts:secret@elsewhere/drafts"}
    layout = Layout(WELL_KNOWN_PORTS, given)
    settings = layout.environment("queue", *OWN)
    assert settings["POSTFLOW_QUEUE_DATABASE_URL"] == "postgresql://own"
    assert settings["POSTFLOW_NATS_URL"] == "nats://own"
    assert settings["POSTFLOW_QUEUE_LISTEN"] == "127.0.0.1:50052"
    assert settings["POSTFLOW_QUEUE_METRICS_LISTEN"] == "127.0.0.1:9465"
    assert settings["POSTFLOW_PUBLISHER_TARGET"] == "127.0.0.1:50054"
    assert settings["POSTFLOW_ENVIRONMENT"] == "development"
    assert settings["PYTHONTZPATH"] == ""
    assert "secret" not in str(settings)
    assert "POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE" not in settings


def test_only_the_publisher_gets_the_key_and_the_sandbox() -> None:
    settings = Layout(WELL_KNOWN_PORTS, {}).environment("publisher", *OWN)
    assert settings["POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE"] == "key"
    assert settings["POSTFLOW_PUBLISHER_SANDBOX_URL"] == "http://127.0.0.1:50060"


def test_mails_go_into_the_folder_unless_the_caller_sends_them() -> None:
    def mail_url(service: str, **given: str) -> str | None:
        return (
            Layout(WELL_KNOWN_PORTS, given)
            .environment(service, *OWN, "/state/my mail")
            .get("POSTFLOW_PUBLISHER_MAIL_URL")
        )

    assert mail_url("publisher") == "file:///state/my%20mail"
    assert mail_url("queue") is None
    assert mail_url("publisher", POSTFLOW_MAIL_URL="smtp://relay") is None
    assert mail_url("publisher", POSTFLOW_PUBLISHER_MAIL_URL="smtp://relay") == "smtp://relay"


def test_settings_of_the_caller_take_precedence() -> None:
    given = {
        "POSTFLOW_QUEUE_LISTEN": "0.0.0.0:6000",
        "POSTFLOW_DRAFTS_LISTEN": "[::1]:6001",
        "POSTFLOW_PUBLISHER_TARGET": "dns:///elsewhere:1",
        "POSTFLOW_PUBLISHER_CREDENTIALS_KEY": "mine",
        "POSTFLOW_PUBLISHER_SANDBOX_URL": "http://elsewhere",
        "POSTFLOW_ENVIRONMENT": "production",
        "POSTFLOW_LOG_LEVEL": "DEBUG",
    }
    layout = Layout(WELL_KNOWN_PORTS, given)
    assert layout.targets["queue"] == "127.0.0.1:6000"
    assert layout.targets["drafts"] == "[::1]:6001"
    assert layout.local("publisher") == "127.0.0.1:50054"
    settings = layout.environment("publisher", *OWN)
    assert {name: settings[name] for name in given} == given


def test_a_given_port_0_becomes_a_port_that_clients_can_use() -> None:
    layout = Layout(WELL_KNOWN_PORTS, {"POSTFLOW_QUEUE_LISTEN": "127.0.0.1:0"})
    assert layout.environment("queue", *OWN)["POSTFLOW_QUEUE_LISTEN"] == layout.targets["queue"] != "127.0.0.1:0"


def test_settings_in_our_own_environment_reach_a_process_only_when_given() -> None:
    """The process that runs these tests may have some set; tests must not depend on it."""
    assert "POSTFLOW_ELSEWHERE" not in Layout(FREE_PORTS, {}).environment("queue", *OWN)
    assert Layout(FREE_PORTS, {}).environment("queue", *OWN)["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize("service", SERVICES)
def test_a_port_in_use_is_named_with_the_variable_that_changes_it(service: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        variable = f"POSTFLOW_{service.upper()}_METRICS_LISTEN"
        layout = Layout(FREE_PORTS, {variable: f"127.0.0.1:{port}"})
        with pytest.raises(PortInUse, match=rf"port {port} \({service}, metrics\).*set {variable}=HOST:PORT"):
            layout.check_ports(SERVICES)


def test_a_sandbox_port_in_use_is_named_unless_the_sandbox_is_elsewhere() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        given = {"POSTFLOW_SANDBOX_LISTEN": f"127.0.0.1:{listener.getsockname()[1]}"}
        with pytest.raises(PortInUse, match=r"sandbox provider.*POSTFLOW_SANDBOX_LISTEN"):
            Layout(FREE_PORTS, given).check_ports(SERVICES)
        elsewhere = {"POSTFLOW_PUBLISHER_SANDBOX_URL": "http://elsewhere"}
        Layout(FREE_PORTS, given | elsewhere).check_ports(SERVICES)


def test_an_address_without_a_port_is_refused_with_its_variable() -> None:
    for address in ("localhost", "127.0.0.1:99999", "127.0.0.1:x"):
        with pytest.raises(StackError, match=f"POSTFLOW_QUEUE_LISTEN: '{address}' is not host:port"):
            Layout(FREE_PORTS, {"POSTFLOW_QUEUE_LISTEN": address})


@pytest.mark.parametrize(
    ("variable", "form"),
    [
        ("POSTFLOW_QUEUE_DATABASE_URL", "postgresql://user:password@host"),
        ("POSTFLOW_NATS_URL", "nats://user:password@host"),
        ("POSTFLOW_PUBLISHER_SANDBOX_URL", "http://host"),
    ],
)
def test_a_malformed_server_address_is_refused_with_its_variable(variable: str, form: str) -> None:
    with pytest.raises(StackError, match=f"{variable}: is not {form}"):
        Layout(FREE_PORTS, {variable: "ftp://geheim"})
