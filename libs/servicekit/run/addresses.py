"""Server addresses as settings: validated when they are read, and shown without passwords."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated
from urllib.parse import SplitResult, parse_qsl, urlsplit

from servicekit.run.settings import Secret

_POSTGRES = frozenset({"postgresql", "postgres", "postgresql+asyncpg"})
# nats-py needs aiohttp for WebSockets (ws, wss): 8 MB in each process.
_NATS = frozenset({"nats", "tls"})
_HTTP = frozenset({"http", "https"})
# The options that both SQLAlchemy and asyncpg accept; either fails with a traceback on any other.
_POSTGRES_OPTIONS = frozenset({"host", "port", "user", "password", "passfile", "sslmode", "target_session_attrs"})
_UNREADABLE = "an address that cannot be read"


class Misconfigured(Exception):
    """The server that a setting names refuses us: only a person can correct that. `setting` is the field's name."""

    def __init__(self, setting: str, complaint: str) -> None:
        super().__init__(f"{setting}: {complaint}")
        self.setting = setting
        self.complaint = complaint


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The address of a server, and the variable that sets it."""

    variable: str
    address: str  # without password


Recogniser = Callable[[BaseException], Misconfigured | None]

_recognisers: list[Recogniser] = []


def recognise(recogniser: Recogniser) -> None:
    """Adds a recogniser for the errors of one client library, where that library is imported."""
    if recogniser not in _recognisers:
        _recognisers.append(recogniser)


def misconfiguration(error: BaseException) -> Misconfigured | None:
    if isinstance(error, Misconfigured):
        return error
    return next((found for recogniser in _recognisers if (found := recogniser(error))), None)


def check_postgres(value: Secret) -> None:
    parts = _split(value.reveal())
    local = parts is not None and "host=" in parts.query
    if parts is None or parts.scheme not in _POSTGRES or not (parts.hostname or local) or len(parts.path) < 2:
        raise ValueError("is not postgresql://user:password@host:port/database")
    if _is_cut_short(parts):
        raise ValueError("has a user or password in which / ? # must be percent-encoded")
    for option, _ in parse_qsl(parts.query, keep_blank_values=True):
        if option not in _POSTGRES_OPTIONS:
            known = ", ".join(sorted(_POSTGRES_OPTIONS))
            raise ValueError(f"has the option {option}, which is none of {known}")


def check_nats(value: str) -> None:
    for url in value.split(","):
        parts = _split(url if "://" in url else f"nats://{url}")
        if parts is None or parts.scheme not in _NATS or not parts.hostname:
            raise ValueError("is not nats://user:password@host:port")
        if _is_cut_short(parts):
            raise ValueError("has a user or password in which / ? # , must be percent-encoded")


def check_http(value: str) -> None:
    parts = _split(value)
    if parts is None or parts.scheme not in _HTTP or not parts.hostname:
        raise ValueError("is not http://host:port")


def without_password(url: str) -> str:
    """Returns the address for people; nothing is shown of an address that cannot be parsed."""
    if url.partition("://")[0] in _POSTGRES:
        return _shown(url)
    servers = url.split(",")
    # A comma in a password would make its first part look like a server.
    torn = any("@" in later and "@" not in earlier for earlier, later in pairwise(servers))
    return _UNREADABLE if torn else ",".join(map(_shown, servers))


def _shown(url: str) -> str:
    parts = _split(url if "://" in url else f"nats://{url}")
    if parts is None or _is_cut_short(parts):
        return _UNREADABLE
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or ""
    user = f"{parts.username}@" if parts.username and parts.password is not None else ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{user}{host}{port}{parts.path}"


def _is_cut_short(parts: SplitResult) -> bool:
    """Returns whether an unescaped / ? # in the password cuts off the server, so that the rest looks like a path."""
    return "@" in parts.path + parts.query + parts.fragment


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        return None
    return parts


PostgresUrl = Annotated[Secret, check_postgres]
NatsUrl = Annotated[str, check_nats]
HttpUrl = Annotated[str, check_http]
