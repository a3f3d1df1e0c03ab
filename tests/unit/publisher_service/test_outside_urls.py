"""The URL of a user's file is accepted in one spelling, or refused with a reason that the user understands."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from publisher_service.adapters.outside.refusals import AddressReason, AddressRefused
from publisher_service.adapters.outside.urls import (
    LONGEST_URL,
    OutsideUrl,
    read_host,
    read_private_hosts,
    read_redirect,
    read_url,
)

LONG = "https://example.com/" + "a" * (LONGEST_URL - 20)
REFUSED = {
    "URL_TOO_LONG": [LONG + "a", "https://example.com/" + "é" * 400],
    "URL_NOT_HTTPS": [
        "http://example.com/a",
        "HTTP://example.com/a",
        "ftp://example.com/a",
        "file:///etc/passwd",
        "gopher://example.com/_",
        "javascript://example.com/%0a",
    ],
    "URL_HAS_PORT": ["https://example.com:80/", "https://example.com:8443/", "https://example.com:000000443/"],
    "URL_HAS_CREDENTIALS": [
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://example.com@127.0.0.1/",
        "https://@example.com/",
        "https://example.com:443@evil.com/",
    ],
    "URL_IP_ADDRESS": [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://127.0.1/",
        "https://0x7f000001/",
        "https://0X7F.1/",
        "https://0x7f.0.0.0x1/",
        "https://2130706433/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://127.0.0.1./",
        "https://0/",
        "https://0x/",
        "https://8.8.8.8/",
        "https://256.256.256.256/",
        "https://1.2.3/",
        "https://999999999999/",
        "https://[::1]/",
        "https://[::1]:443/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1%25eth0]/",
        "https://[2606:4700::1111]/",
        "https://\uff11\uff12\uff17\uff0e\uff10\uff0e\uff10\uff0e\uff11/",
        "https://127\u30020\u30020\u30021/",
        "https://\u2460\u2461\u2466.0.0.\u2460/",
        "https://example.com.1/",
    ],
    "URL_PRIVATE": [
        "https://localhost/",
        "https://LOCALHOST./",
        "https://a.localhost/",
        "https://metadata/",
        "https://metadata.google.internal/",
        "https://printer.local/",
        "https://hidden.onion/",
    ],
    "URL_MALFORMED": [
        "",
        "example.com/a",
        "//example.com/a",
        "https:example.com",
        "https:/example.com",
        "https://",
        "https:///a",
        "https://?a",
        "https://.example.com/",
        "https://example..com/",
        "https://-a.example.com/",
        "https://a-.example.com/",
        "https://" + "a" * 64 + ".com/",
        "https://" + "a." * 127 + "com/",
        "https://example.com:abc/",
        "https://example.com:4\u06643/",
        "https://::1/",
        "https://ex%61mple.com/",
        "https://127.0.0.1%2f.example.com/",
        "https://example.com\\@127.0.0.1/",
        "https://example.com\\.evil.com/",
        " https://example.com/",
        "https://example.com/ ",
        "https://example.com/a b",
        "https://exam\tple.com/",
        "https://example.com/\r\nHost: evil",
        "https://example.com\x00.evil.com/",
        "https://example.com/\ud800",
        "https://exa\u202emple.com/",
        "https://example.com\uff20evil.com/",
        "https://example.com\uff0f.evil.com/",
        "https://a,b.example.com/",
        "https://*.example.com/",
    ],
}
ACCEPTED = {
    "https://example.com": "https://example.com/",
    "HTTPS://Example.COM:443/A": "https://example.com/A",
    "https://example.com:/a": "https://example.com/a",
    "https://example.com./a": "https://example.com/a",
    "https://example.com?a=b": "https://example.com/?a=b",
    "https://example.com/a?b=c#fragment": "https://example.com/a?b=c",
    "https://example.com/a#b?c": "https://example.com/a",
    "https://example.com/%2e%2e/ä?ü=ß": "https://example.com/%2e%2e/%C3%A4?%C3%BC=%C3%9F",
    'https://example.com/"<>?"<>': "https://example.com/%22%3C%3E?%22%3C%3E",
    "https://example.com/a@b:80/[1]": "https://example.com/a@b:80/%5B1%5D",
    "https://my_bucket.s3.amazonaws.com/a": "https://my_bucket.s3.amazonaws.com/a",
    "https://münchen.de/": "https://xn--mnchen-3ya.de/",
    "https://faß.de/": "https://xn--fa-hia.de/",
    "https://127.0.0.1.nip.io/": "https://127.0.0.1.nip.io/",
    "https://1.2.3.4a/": "https://1.2.3.4a/",
    LONG: LONG,
}


@pytest.mark.parametrize(("reason", "url"), [(reason, url) for reason in REFUSED for url in REFUSED[reason]], ids=ascii)
def test_a_url_is_refused_with_its_reason(reason: str, url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        read_url(url)
    assert refused.value.reason == reason
    assert url not in refused.value.message or not url


def test_every_reason_has_a_url() -> None:
    assert {*REFUSED} == {*AddressReason}


@pytest.mark.parametrize("url", ACCEPTED, ids=ascii)
def test_a_url_is_normalised(url: str) -> None:
    assert read_url(url).text == ACCEPTED[url]
    assert read_url(ACCEPTED[url]) == read_url(url)


def test_a_url_is_shown_without_its_query() -> None:
    url = read_url("https://example.com/a/b.png?signature=canary#canary")
    assert url.shown == str(url) == f"{url}" == "https://example.com/a/b.png"
    assert "canary" not in repr(url)
    assert url.target == "/a/b.png?signature=canary"


def test_a_refusal_names_the_field() -> None:
    with pytest.raises(AddressRefused) as refused:
        read_url("http://example.com/")
    fault = refused.value.as_fault("media[0].url")
    assert (fault.reason, fault.metadata) == ("URL_NOT_HTTPS", {"field": "media[0].url"})
    assert fault.message == "media[0].url: must begin with https://"


@pytest.mark.parametrize(
    ("location", "to"),
    [
        ("b?c", "https://example.com/a/b?c"),
        ("/b", "https://example.com/b"),
        ("//other.com/b", "https://other.com/b"),
        ("https://other.com", "https://other.com/"),
        ("http://example.com/a", "URL_NOT_HTTPS"),
        ("//127.0.0.1/", "URL_IP_ADDRESS"),
        ("https://169.254.169.254/latest", "URL_IP_ADDRESS"),
        ("//localhost/", "URL_PRIVATE"),
        ("//user@example.com/", "URL_HAS_CREDENTIALS"),
        ("//example.com:22/", "URL_HAS_PORT"),
        ("file:///etc/passwd", "URL_NOT_HTTPS"),
        ("data:image/png;base64,", "URL_MALFORMED"),
        ("//[::1", "URL_MALFORMED"),
        ("/a b", "URL_MALFORMED"),
        ("\\\\evil.com", "URL_MALFORMED"),
        ("/" + "a" * LONGEST_URL, "URL_MALFORMED"),
    ],
)
def test_a_redirect_is_under_the_same_rules(location: str, to: str) -> None:
    base = read_url("https://example.com/a/x?secret")
    assert redirected(base, location) == to


def redirected(base: OutsideUrl, location: str) -> str:
    """Returns the whole new URL, or the reason why it is refused."""
    try:
        return read_redirect(base, location).text
    except AddressRefused as refused:
        return refused.reason


def test_a_private_host_may_be_called_by_http_at_its_port_alone() -> None:
    private = read_private_hosts("localhost:8080,127.0.0.1:9000, [::1]:80")
    for url in ("http://localhost:8080/a", "https://LOCALHOST:8080/a", "http://127.0.0.1:9000/", "http://[::1]/"):
        assert read_url(url, private_hosts=private)
    for url in ("http://localhost/", "http://localhost:9000/", "http://127.0.0.1:8080/", "https://127.0.0.1/"):
        with pytest.raises(AddressRefused):
            read_url(url, private_hosts=private)
    assert read_url("http://[::1]/a", private_hosts=private).text == "http://[::1]/a"


def test_no_private_host_is_the_default() -> None:
    assert read_private_hosts("") == frozenset()


@pytest.mark.parametrize("setting", ["localhost", "localhost:", ":80", "localhost:http", "localhost:123456"])
def test_a_private_host_without_a_port_is_refused(setting: str) -> None:
    with pytest.raises(ValueError, match="is not host:port"):
        read_private_hosts(setting)


@pytest.mark.parametrize("host", ["smtp.example.com", "SMTP.Example.com.", "my-host.example"])
def test_a_host_is_normalised(host: str) -> None:
    assert read_host(host) == host.lower().removesuffix(".")


@given(st.text(max_size=100) | st.text("0123456789abcdefx.:[]%/@?#\\ ", max_size=40).map("https://".__add__))
@example("https://[")
@example("https://a.b:")
@example("https://xn--.com/")
@example("https://" + "ß" * 300)
def test_every_url_is_accepted_in_ascii_or_refused(url: str) -> None:
    try:
        read = read_url(url)
    except AddressRefused:
        return
    assert read.text.isascii()
    assert read.text.isprintable()
    assert " " not in read.text
    assert (read.scheme, read.port) == ("https", 443)
    assert read_url(read.text) == read
