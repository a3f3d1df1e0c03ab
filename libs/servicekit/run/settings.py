"""Settings of a process: a frozen dataclass filled from the environment, validated before anything starts.

The field `nats_url` of the service `queue` is read from POSTFLOW_QUEUE_NATS_URL, or else POSTFLOW_NATS_URL.
"""

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_PREFIX = "POSTFLOW_"
_LAST_PORT = 65_535
# All processes may share an environment, in which POSTFLOW_<SERVICE>_TARGET is where the others find a service.
_MEANT_FOR_OTHERS = frozenset({"target"})
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}

_log = logging.getLogger(__name__)


class SettingsError(Exception):
    """Names every wrong variable, each with what it must be."""


class Secret:
    """A text that only `reveal` shows: not a log, a repr in a traceback, JSON or a pickle."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __format__(self, _specification: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")


class Environment(StrEnum):
    DEVELOPMENT = "development"
    PRODUCTION = "production"


class LogLevel(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


def check_listen(value: str) -> None:
    host, _, port = value.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) <= _LAST_PORT):
        raise ValueError(f"{value!r} is not host:port with a port from 0 (any free one) to {_LAST_PORT}")


def _check_count(value: int) -> None:
    if value < 1:
        raise ValueError(f"{value} is not at least 1")


def _check_period(value: timedelta) -> None:
    if value <= timedelta(0):
        raise ValueError("must be longer than 0 seconds")


Listen = Annotated[str, check_listen]
Count = Annotated[int, _check_count]
Period = Annotated[timedelta, _check_period]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """The settings of every process. A service adds its own fields and the defaults of the two addresses."""

    listen: Listen  # gRPC address, host:port; port 0 = any free port
    metrics_listen: Listen  # address of /metrics, host:port; port 0 = any free port
    environment: Environment = Environment.DEVELOPMENT
    log_level: LogLevel = LogLevel.INFO
    failpoints: str = ""  # see servicekit.failpoints
    clock_offset: float = 0.0  # seconds to shift this process's wall clock, for tests; refused in production
    grace: timedelta = timedelta(seconds=20)  # for work in flight at a stop
    # How long an event that hits a defect, unlike others of its type, is retried before it is parked.
    park_poison_after: timedelta = timedelta(minutes=5)


def load(cls: type[T], service: str, environ: Mapping[str, str]) -> T:
    """Reads the settings. Raises SettingsError with all problems; a variable that no field reads is only logged."""
    own_prefix = f"{_PREFIX}{service.upper()}_"
    types = get_type_hints(cls, include_extras=True)
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        variable = variable_of(field.name, service, environ)
        if variable not in environ:
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                problems.append(f"{variable} (or {_PREFIX}{field.name.upper()}) is not set")
            continue
        try:
            values[field.name] = _parse(types[field.name], environ[variable])
        except ValueError as error:
            problems.append(f"{variable}: {error}")
    if problems:
        raise SettingsError("; ".join(problems))
    for variable in _unread(own_prefix, types.keys() | _MEANT_FOR_OTHERS, environ):
        _log.warning("unknown setting %s is ignored", variable)
    try:
        return cls(**values)
    except ValueError as error:
        raise SettingsError(f"settings of {service}: {error}") from None


def variable_of(field: str, service: str, environ: Mapping[str, str]) -> str:
    """Returns the variable that a field is read from: the service's own if neither is set."""
    own, common = f"{_PREFIX}{service.upper()}_{field.upper()}", f"{_PREFIX}{field.upper()}"
    return common if common in environ and own not in environ else own


def _unread(own_prefix: str, names: Set[str], environ: Mapping[str, str]) -> list[str]:
    known = {own_prefix + name.upper() for name in names}
    return [variable for variable in sorted(environ) if variable.startswith(own_prefix) and variable not in known]


def _parse(wanted: Any, text: str) -> Any:
    if get_origin(wanted) is Annotated:
        kind, *checks = get_args(wanted)
        value = _parse(kind, text)
        for check in checks:
            check(value)
        return value
    if isinstance(wanted, UnionType):
        wanted = next(kind for kind in get_args(wanted) if kind is not NoneType)
    if wanted in _PARSERS:
        return _PARSERS[wanted](text)
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return _choice(wanted, text)
    raise TypeError(f"settings have no parser for {wanted!r}")


def _choice(wanted: type[StrEnum], text: str) -> StrEnum:
    try:
        return wanted(text)
    except ValueError:
        raise ValueError(f"{text!r} is none of {', '.join(wanted)}") from None


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a number")
    return value


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither true nor false") from None


def _seconds(text: str) -> timedelta:
    value = _number(text)
    if not 0 <= value <= timedelta.max.total_seconds():
        raise ValueError(f"{text!r} is not a number of seconds")
    return timedelta(seconds=value)


_PARSERS: Mapping[Any, Callable[[str], Any]] = {
    str: str,
    int: _integer,
    float: _number,
    bool: _boolean,
    timedelta: _seconds,
    Path: Path,
    Secret: Secret,
}
