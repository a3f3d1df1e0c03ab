"""Judges the URLs and hosts that users name; what they resolve to is checked later, by `network`."""

import re
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Annotated, Final, NoReturn
from urllib.parse import quote, urljoin

from publisher_service.adapters.outside.refusals import AddressReason, AddressRefused

LONGEST_URL: Final = 2048

HostPort = tuple[str, int]

# Nothing else is stripped or mended: where two parsers may read a URL differently, it is refused.
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?")
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f\\\s]")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# A host whose last label is a number is an IPv4 address, in one notation or another: 127.1, 0x7f000001, 017700000001.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT: Final = re.compile(r"[0-9]{1,5}")
# Names that resolve only inside a network or a machine.
_LOCAL: Final = frozenset({"internal", "local", "localhost", "onion"})
_KEPT: Final = "/:@!$&'()*+,;=~-._%"
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideUrl:
    """A URL that may be called, normalised. Its query often has a signature, so that it is shown without it."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = field(repr=False)

    @property
    def target(self) -> str:
        """The part that the request line asks for."""
        return self.path + (f"?{self.query}" if self.query else "")

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """The URL for people and logs, without its query."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def text(self) -> str:
        """The whole URL, which is a secret if it is signed."""
        return f"{self.scheme}://{self.authority}{self.target}"

    def __str__(self) -> str:
        return self.shown


def read_url(url: str, *, private_hosts: Set[HostPort] = frozenset()) -> OutsideUrl:
    """Returns the URL, normalised. Raises AddressRefused."""
    if len(url) > LONGEST_URL:
        _refuse(AddressReason.URL_TOO_LONG, f"must have at most {LONGEST_URL} characters")
    match = None if _FORBIDDEN.search(url) else _URL.fullmatch(url)
    if match is None:
        _refuse(AddressReason.URL_MALFORMED, "must be a URL like https://host/path")
    scheme, authority, path, query = match[1].lower(), match[2], match[3] or "/", match[4] or ""
    if scheme not in _DEFAULT_PORTS:
        _refuse(AddressReason.URL_NOT_HTTPS, "must begin with https://")
    host, port = _place(scheme, authority, private_hosts)
    read = OutsideUrl(scheme=scheme, host=host, port=port, path=_quoted(path), query=_quoted(query, "?"))
    if len(read.text) > LONGEST_URL:
        _refuse(AddressReason.URL_TOO_LONG, f"must have at most {LONGEST_URL} characters, percent-encoded")
    return read


def read_redirect(base: OutsideUrl, location: str, *, private_hosts: Set[HostPort] = frozenset()) -> OutsideUrl:
    """Returns where an answer of `base` redirects to, under the same rules. Raises AddressRefused."""
    if len(location) > LONGEST_URL or _FORBIDDEN.search(location):
        _refuse(AddressReason.URL_MALFORMED, "redirects to something that is no URL")
    try:
        joined = urljoin(base.text, location)
    except ValueError:
        _refuse(AddressReason.URL_MALFORMED, "redirects to something that is no URL")
    return read_url(joined, private_hosts=private_hosts)


def read_host(host: str) -> str:
    """Returns the name of a public host, as DNS has it. Raises AddressRefused."""
    if host.startswith("["):
        _refuse(AddressReason.URL_IP_ADDRESS, "must name its host, not an IP address")
    labels = _ascii(host).lower().removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        _refuse(AddressReason.URL_IP_ADDRESS, "must name its host, not an IP address")
    if not all(map(_LABEL.fullmatch, labels)) or len(name := ".".join(labels)) > 253:
        _refuse(AddressReason.URL_MALFORMED, "must have a valid host name")
    if len(labels) == 1 or labels[-1] in _LOCAL:
        _refuse(AddressReason.URL_PRIVATE, "must name a host of the public Internet")
    return name


def read_private_hosts(setting: str) -> frozenset[HostPort]:
    """Reads `host:port,[::1]:8080`. Raises ValueError."""
    return frozenset(map(_private_host, filter(None, setting.split(","))))


def check_private_hosts(setting: str) -> None:
    read_private_hosts(setting)


def _private_host(text: str) -> HostPort:
    host, _, port = text.strip().lower().rpartition(":")
    if not host or not _PORT.fullmatch(port):
        raise ValueError(f"{text!r} is not host:port")
    return host.strip("[]"), int(port)


def _place(scheme: str, authority: str, private_hosts: Set[HostPort]) -> HostPort:
    if "@" in authority:
        _refuse(AddressReason.URL_HAS_CREDENTIALS, "must have no user name or password")
    host, colon, digits = authority.rpartition(":") if re.search(r":[0-9]*$", authority) else (authority, "", "")
    if len(digits) > 5:
        _refuse(AddressReason.URL_HAS_PORT, "must use port 443")
    port = int(digits) if colon and digits else _DEFAULT_PORTS[scheme]
    if (private := (host.lower().strip("[]"), port)) in private_hosts:
        return private
    if scheme != "https":
        _refuse(AddressReason.URL_NOT_HTTPS, "must begin with https://")
    name = read_host(host)
    if port != 443:
        _refuse(AddressReason.URL_HAS_PORT, "must use port 443")
    return name, port


def _ascii(host: str) -> str:
    if host.isascii():
        return host
    import idna  # most processes never need it: 1.2 MB

    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode()
    except UnicodeError:
        _refuse(AddressReason.URL_MALFORMED, "must have a valid host name")


def _quoted(text: str, more: str = "") -> str:
    try:
        return quote(text, safe=_KEPT + more)
    except UnicodeEncodeError:  # a lone surrogate
        _refuse(AddressReason.URL_MALFORMED, "must be valid Unicode")


def _refuse(reason: AddressReason, message: str) -> NoReturn:
    raise AddressRefused(reason, message) from None


PrivateHosts = Annotated[str, check_private_hosts]
