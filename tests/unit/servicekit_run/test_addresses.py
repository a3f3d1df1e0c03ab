"""Server addresses: invalid ones are refused, and no part of a password is ever shown."""

import pytest

from servicekit.run.addresses import check_http, check_nats, check_postgres, without_password
from servicekit.run.settings import Secret, check_listen


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:geheim@h:5432/d",
        "postgresql://u:12/geheim@h:5432/d",
        "postgresql://u:12?geheim@h:5432/d",
        "postgresql://u:12#geheim@h:5432/d",
        "postgresql://u:12,geheim@h:5432/d",
        "postgresql://u:gehe@im@h:5432/d",
        "postgresql://h/d?user=u&password=geheim",
        "nats://u:12/geheim@h:4222",
        "nats://u:12,geheim@h:4222",
        "nats://geheim@h:4222",
        "nats://u:geheim@h:4222,nats://u:geheim@i:4222,nats://j:4222",
    ],
)
def test_no_part_of_a_password_is_shown(url: str) -> None:
    shown = without_password(url)
    assert not [part for part in ("12", "geh", "heim", "im@") if part in shown], shown


def test_the_rest_of_an_address_is_shown() -> None:
    assert without_password("postgresql://u:p,q@h:5432/d") == "postgresql://u@h:5432/d"
    assert without_password("nats://u:p@h:4222,nats://i:4222") == "nats://u@h:4222,nats://i:4222"


@pytest.mark.parametrize("character", ["/", "?", "#"])
def test_a_character_that_would_end_a_password_must_be_encoded(character: str) -> None:
    with pytest.raises(ValueError, match=r"percent-encoded|is not postgresql://"):
        check_postgres(Secret(f"postgresql://u:12{character}34@h/d"))
    with pytest.raises(ValueError, match=r"percent-encoded|is not nats://"):
        check_nats(f"nats://u:12{character}34@h")


def test_options_that_the_client_does_not_accept_are_named() -> None:
    check_postgres(Secret("postgresql://u:p@h/d?sslmode=require"))
    with pytest.raises(ValueError, match="has the option application_name, which is none of host, "):
        check_postgres(Secret("postgresql://u:p@h/d?application_name=x"))


@pytest.mark.parametrize("url", ["nonsense", "ftp://h", "http://", "http://h:port"])
def test_an_invalid_http_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not http://host:port"):
        check_http(url)


@pytest.mark.parametrize("address", ["", "host", "host:", ":50051", "host:65536", "host:-1", "host:x", "host:٣"])
def test_an_invalid_listen_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="is not host:port"):
        check_listen(address)


@pytest.mark.parametrize("scheme", ["ws", "wss", "http"])
def test_nats_is_reached_by_tcp_or_tls_alone(scheme: str) -> None:
    check_nats("nats://h:4222,tls://i:4222")
    with pytest.raises(ValueError, match="is not nats://"):
        check_nats(f"nats://h:4222,{scheme}://i:4222")
