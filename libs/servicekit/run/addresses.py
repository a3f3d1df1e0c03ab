"""Addresses of servers as settings: checked when they are read, and shown without what is secret in them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from servicekit.run.settings import Secret

_POSTGRES = frozenset({"postgresql", "postgres", "postgresql+asyncpg"})
_NATS = frozenset({"nats", "tls", "ws", "wss"})


class Misconfigured(Exception):
    """What a setting names is there and refuses us: only a person can mend that. `setting` is the name of its field."""

    def __init__(self, setting: str, complaint: str) -> None:
        super().__init__(f"{setting}: {complaint}")
        self.setting = setting
        self.complaint = complaint


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a process was told to find a server."""

    variable: str
    address: str  # without password


Recogniser = Callable[[BaseException], Misconfigured | None]

_recognisers: list[Recogniser] = []


def recognise(recogniser: Recogniser) -> None:
    """Adds the knowledge of one client library; called where that library is imported."""
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


def check_nats(value: str) -> None:
    for url in value.split(","):
        parts = _split(url if "://" in url else f"nats://{url}")
        if parts is None or parts.scheme not in _NATS or not parts.hostname:
            raise ValueError("is not nats://user:password@host:port")


def without_password(url: str) -> str:
    """For people. Nothing of an address that cannot be read is shown."""
    return ",".join(_shown(each) for each in url.split(","))


def _shown(url: str) -> str:
    parts = _split(url if "://" in url else f"nats://{url}")
    if parts is None:
        return "an address that cannot be read"
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or ""
    user = f"{parts.username}@" if parts.username and parts.password is not None else ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{user}{host}{port}{parts.path}"


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        return None
    return parts


PostgresUrl = Annotated[Secret, check_postgres]
NatsUrl = Annotated[str, check_nats]
