"""Settings of an account of a mail server, besides its password."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NoReturn
from urllib.parse import quote, urlsplit

from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.refusals import AddressRefused
from publisher_service.adapters.providers.mail_addresses import is_address, is_one_line
from publisher_service.adapters.providers.settings_of_accounts import known_settings
from servicekit.faults import InvalidField
from servicekit.record import record

_PORTS: Final = (25, 465, 587, 2525)
_LONGEST: Final = 500


class Security(StrEnum):
    # TLS from the first byte.
    TLS = "tls"
    # TLS before anything but a greeting is said; without it nothing is.
    STARTTLS = "starttls"
    # Only for hosts that are private to this installation.
    PLAIN = "plain"


_DEFAULT_PORTS: Final = {Security.TLS: 465, Security.STARTTLS: 587, Security.PLAIN: 25}


@record(frozen=True, slots=True, kw_only=True)
class SmtpSettings:
    host: str
    port: int
    security: Security
    # Empty: the from address, which is the account's name at the provider.
    username: str = ""
    from_address: str = ""
    from_name: str = ""
    # Where a recipient ends the mails: a URL or `mailto:`, with `{address}` where the recipient's is to stand.
    list_unsubscribe: str = ""

    def as_mapping(self) -> Mapping[str, str]:
        """Returns the settings as they are stored: without those that are empty."""
        texts = {
            "host": self.host,
            "port": str(self.port),
            "security": self.security.value,
            "username": self.username,
            "from_address": self.from_address,
            "from_name": self.from_name,
            "list_unsubscribe": self.list_unsubscribe,
        }
        return {name: text for name, text in texts.items() if text}

    def unsubscribe_for(self, address: str) -> str:
        return self.list_unsubscribe.replace("{address}", quote(address, safe="@"))


_KNOWN: Final = frozenset({"host", "port", "security", "username", "from_address", "from_name", "list_unsubscribe"})


def read_settings(settings: Mapping[str, str], outside: Outside) -> SmtpSettings:
    """Returns the settings, normalised. Looks nothing up. Raises InvalidField."""
    known_settings(settings, _KNOWN)
    for name, text in settings.items():
        if len(text) > _LONGEST or not is_one_line(text):
            _refuse(name, f"must be one line of at most {_LONGEST} characters")
    security = _security(settings.get("security", "").lower(), settings.get("port", ""))
    port = _port(settings.get("port", ""), security)
    return SmtpSettings(
        host=_host(settings.get("host", "").strip(), port, security, outside),
        port=port,
        security=security,
        username=settings.get("username", ""),
        from_address=_from_address(settings.get("from_address", "")),
        from_name=settings.get("from_name", "").strip(),
        list_unsubscribe=_list_unsubscribe(settings.get("list_unsubscribe", "")),
    )


def _security(text: str, port: str) -> Security:
    if not text:
        return Security.TLS if port == str(_DEFAULT_PORTS[Security.TLS]) else Security.STARTTLS
    if text not in list(Security):
        _refuse("security", f"must be one of {', '.join(Security)}")
    return Security(text)


def _port(text: str, security: Security) -> int:
    if not text:
        return _DEFAULT_PORTS[security]
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        _refuse("port", "must be a number")
    return int(text)


def _host(host: str, port: int, security: Security, outside: Outside) -> str:
    """Returns the name of the host. One that is private to this installation may have any port, and no TLS."""
    if not host:
        _refuse("host", "is required: the name of the mail server")
    is_private = outside.is_private(host, port)
    if port not in _PORTS and not is_private:
        _refuse("port", f"must be one of {', '.join(map(str, _PORTS))}")
    if security is Security.PLAIN and not is_private:
        _refuse("security", "must be tls or starttls: a password is never sent in plain text")
    try:
        return outside.read_host(host, port)
    except AddressRefused as refused:
        raise refused.as_fault("settings.host") from None


def _from_address(text: str) -> str:
    if text and not is_address(text):
        _refuse("from_address", "must be an e-mail address in ASCII")
    return text


def _list_unsubscribe(text: str) -> str:
    parts = urlsplit(text)
    is_url = parts.scheme == "mailto" or (parts.scheme == "https" and parts.netloc)
    if text and not (is_url and text.isascii() and not set(text) & set(" <>,")):
        _refuse("list_unsubscribe", "must be an https URL or a mailto: address, without spaces, commas or <>")
    return text


def _refuse(name: str, description: str) -> NoReturn:
    raise InvalidField(f"settings.{name}", description)
