"""Named places where a test can kill, stall or break a process. Inert unless POSTFLOW_FAILPOINTS names one.

A module declares its names once and passes through them: `SENT = declare("courier.sent")`, `await failpoint(SENT)`.
A specification is `name=action`, comma separated; an action is `kill`, `sleep:SECONDS`, `raise` or `drop`, each with an
optional `:PROBABILITY` or `:once` after it. `drop` breaks the connections of everything that is `droppable`.
`@FILE` names a file with the specification, which the process reads again at each SIGUSR1.
"""

import asyncio
import logging
import os
import random
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol
from weakref import WeakSet

_log = logging.getLogger(__name__)

Kind = Literal["kill", "sleep", "raise", "drop"]
_ONCE = "once"
_FILE = "@"


class FailpointSpecError(ValueError):
    """The specification is invalid, or not allowed here."""


class FailpointHit(Exception):
    """The unexpected error that the action `raise` raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    kind: Kind
    seconds: float = 0.0
    probability: float = 1.0
    once: bool = False


class Droppable(Protocol):
    def drop_connections(self) -> None: ...


_declared: set[str] = set()
_active: dict[str, Action] = {}
_droppable: WeakSet[Droppable] = WeakSet()


def declare(name: str) -> str:
    """Declares a name, once in the code."""
    if name in _declared:
        raise FailpointSpecError(f"failpoint {name} is declared twice")
    _declared.add(name)
    return name


def declared() -> frozenset[str]:
    """Returns the names of all modules imported so far."""
    return frozenset(_declared)


def droppable(client: Droppable) -> None:
    """Has the action `drop` break the connections of this client, for as long as the client exists."""
    _droppable.add(client)


async def failpoint(name: str) -> None:
    if _active and (action := _active.get(name)) and random.random() < action.probability:
        await _perform(name, action)


def install(specification: str, environment: str) -> None:
    """Arms the failpoints of the specification and disarms all others. Refused in production."""
    if environment == "production" and (is_file(specification) or parse(specification)):
        raise FailpointSpecError("failpoints are refused in production")
    actions = parse(_read(specification) if is_file(specification) else specification)
    if unknown := sorted(actions.keys() - _declared):
        raise FailpointSpecError(f"unknown failpoints {', '.join(unknown)}; known: {', '.join(sorted(_declared))}")
    _active.clear()
    _active.update(actions)


def is_file(specification: str) -> bool:
    """Returns whether the specification is in a file, and may change while the process runs."""
    return specification.startswith(_FILE)


def _read(specification: str) -> str:
    try:
        return Path(specification.removeprefix(_FILE)).read_text()
    except OSError as error:
        raise FailpointSpecError(f"{specification} cannot be read: {error.strerror}") from None


def parse(specification: str) -> Mapping[str, Action]:
    return dict(_parse_entry(entry.strip()) for entry in specification.split(",") if entry.strip())


def _parse_entry(entry: str) -> tuple[str, Action]:
    name, _, text = entry.partition("=")
    match text.split(":") if name else []:
        case ["kill" | "raise" | "drop" as kind, *chance] if len(chance) < 2:
            return name, _action(entry, kind, 0.0, *chance)
        case ["sleep", seconds, *chance] if len(chance) < 2:
            return name, _action(entry, "sleep", _number(entry, seconds), *chance)
    wanted = "name=kill, name=sleep:SECONDS, name=raise, name=drop [:PROBABILITY or :once]"
    raise FailpointSpecError(f"{entry!r} is none of {wanted}")


def _action(entry: str, kind: Kind, seconds: float, chance: str = "1") -> Action:
    if chance == _ONCE:
        return Action(kind=kind, seconds=seconds, once=True)
    return Action(kind=kind, seconds=seconds, probability=_number(entry, chance, most=1.0))


def _number(entry: str, text: str, *, most: float = 3600.0) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= most:
        raise FailpointSpecError(f"{entry!r}: {text!r} is not a number from 0 to {most:g}")
    return value


async def _perform(name: str, action: Action) -> None:
    if action.once:
        del _active[name]
    _log.warning("failpoint %s: %s", name, action.kind)
    match action.kind:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sleep":
            await asyncio.sleep(action.seconds)
        case "raise":
            raise FailpointHit(name)
        case "drop":
            for client in tuple(_droppable):
                client.drop_connections()
