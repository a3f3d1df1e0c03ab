"""The setting that says how mail leaves is understood, or refused without being repeated."""

from pathlib import Path

import pytest

from publisher_service.adapters.mail.mail_url import SmtpPlace, read_mail_url, read_sender
from servicekit.run.settings import Secret


def place(url: str) -> SmtpPlace:
    read = read_mail_url(Secret(url))
    assert isinstance(read, SmtpPlace)
    return read


def test_every_form_is_understood() -> None:
    assert read_mail_url(Secret("")) is None
    assert read_mail_url(Secret("file:///var/mail%20box")) == Path("/var/mail box")
    assert place("smtp://relay") == SmtpPlace(host="relay", port=25)
    assert place("smtp://relay:2525").port == 2525
    implicit = place("smtps://ann%40example.com:p%2Fw@mail.example.com")
    assert (implicit.port, implicit.implicit_tls, implicit.start_tls) == (465, True, False)
    assert (implicit.user, implicit.password) == ("ann@example.com", Secret("p/w"))
    started = place("smtp+starttls://mail.example.com")
    assert (started.port, started.start_tls) == (587, True)


@pytest.mark.parametrize(
    "url",
    [
        "canary",
        "http://canary@mail.example.com",
        "smtp://",
        "smtp://ann@mail.example.com?canary",
        "smtp://mail.example.com/canary",
        "smtp://mail.example.com:canary",
        "smtp://ann:can/ary@mail.example.com",
        "file://canary/folder",
        "file:canary",
    ],
)
def test_a_malformed_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"is not|has a") as refused:
        read_mail_url(Secret(url))
    assert "canary" not in str(refused.value)
    assert "ary" not in str(refused.value)


def test_a_sender_is_a_name_and_an_address() -> None:
    sender = read_sender("PostFlow <postflow@example.com>")
    assert (sender.display_name, sender.addr_spec, sender.domain) == (
        "PostFlow",
        "postflow@example.com",
        "example.com",
    )
    assert read_sender("postflow@example.com").display_name == ""


@pytest.mark.parametrize("text", ["", "PostFlow", "PostFlow <postflow>", "a <b@example.com>\r\nBcc: eve@example.com"])
def test_what_is_no_sender_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NAME <ADDRESS>"):
        read_sender(text)
