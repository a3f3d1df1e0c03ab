"""The settings of a mail server are normalised, or refused by the name of the field."""

import pytest

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.providers.smtp_settings import Security, read_settings
from servicekit.faults import InvalidField

OUTSIDE = Outside(private_hosts={("localhost", 1025)})
GOOD = {"host": "Mail.Example.COM", "from_address": "ada@example.com"}


def test_defaults_are_filled_in() -> None:
    read = read_settings(GOOD, OUTSIDE)
    assert read.as_mapping() == {
        "host": "mail.example.com",
        "port": "587",
        "security": "starttls",
        "from_address": "ada@example.com",
    }
    assert read_settings(read.as_mapping(), OUTSIDE) == read


@pytest.mark.parametrize(
    ("settings", "port", "security"),
    [
        ({"port": "465"}, 465, Security.TLS),
        ({"security": "tls"}, 465, Security.TLS),
        ({"security": "TLS", "port": "2525"}, 2525, Security.TLS),
        ({"port": "25"}, 25, Security.STARTTLS),
        ({"host": "localhost", "port": "1025", "security": "plain"}, 1025, Security.PLAIN),
    ],
)
def test_port_and_security_follow_from_each_other(settings: dict[str, str], port: int, security: Security) -> None:
    read = read_settings({**GOOD, **settings}, OUTSIDE)
    assert (read.port, read.security) == (port, security)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"host": ""}, "settings.host"),
        ({"host": "127.0.0.1"}, "settings.host"),
        ({"host": "0x7f000001"}, "settings.host"),
        ({"host": "localhost"}, "settings.host"),
        ({"host": "postgres"}, "settings.host"),
        ({"host": "mail.internal"}, "settings.host"),
        ({"host": "a b.example.com"}, "settings.host"),
        ({"host": "[::1]"}, "settings.host"),
        ({"port": "22"}, "settings.port"),
        ({"port": "0"}, "settings.port"),
        ({"port": "x"}, "settings.port"),
        ({"port": "٢٥"}, "settings.port"),
        ({"port": "999999"}, "settings.port"),
        ({"host": "localhost", "port": "1026"}, "settings.port"),
        ({"security": "ssl"}, "settings.security"),
        ({"security": "plain"}, "settings.security"),
        ({"from_address": "ada"}, "settings.from_address"),
        ({"from_address": "ada@example.com\r\nBcc: eve@example.net"}, "settings.from_address"),
        ({"from_name": "Ada\r\nBcc: eve@example.net"}, "settings.from_name"),
        ({"from_name": "Ada\u2028"}, "settings.from_name"),
        ({"username": "ada\nx"}, "settings.username"),
        ({"username": "a" * 501}, "settings.username"),
        ({"list_unsubscribe": "http://example.com"}, "settings.list_unsubscribe"),
        ({"list_unsubscribe": "https://example.com/>,<https://example.net"}, "settings.list_unsubscribe"),
        ({"password": "x"}, "settings.password"),
    ],
)
def test_a_bad_setting_is_refused_by_its_name(settings: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        read_settings({**GOOD, **settings}, OUTSIDE)
    assert refused.value.metadata == {"field": field}


def test_a_link_to_unsubscribe_names_the_recipient() -> None:
    read = read_settings({**GOOD, "list_unsubscribe": "https://example.com/out?who={address}"}, OUTSIDE)
    assert read.unsubscribe_for("g+x@example.org") == "https://example.com/out?who=g%2Bx@example.org"
