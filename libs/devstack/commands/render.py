"""Output of the processes for people: one line for each entry, with the name of the process in front."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TextIO

WIDTH = 9
COLOURS = {"schedule": 36, "queue": 33, "drafts": 35, "publisher": 32, "sandbox": 34, "postgres": 90, "nats": 90}
ALARMING = frozenset({"WARNING", "ERROR", "CRITICAL"})
RED = 31
SHOWN_ELSEWHERE = frozenset({"time", "level", "service", "logger", "message", "exception"})
ROUTINE = {"postgres": ("LOG:",), "nats": ("[INF]",)}
"""Parts of the lines that servers write when all is well."""
CALLS = "servicekit.rpc.access"
READS = ("Check", "Find", "Get", "List")
OUTCOMES = "publisher_service.application.post_log"


class Printer:
    def __init__(self, stream: TextIO, now: Callable[[], str], *, environ: Mapping[str, str] = os.environ) -> None:
        self._stream = stream
        self._now = now
        self._coloured = stream.isatty() and "NO_COLOR" not in environ

    def line(self, name: str, line: str) -> None:
        """Prints a line that a process wrote."""
        if any(word in line for word in ROUTINE.get(name, ())) or not line.strip():
            return
        entry = _json(line)
        if entry is None or "message" not in entry:
            self._print(name, "", "", _visible(line))
        elif not _is_routine(entry):
            self._print(name, *_read(entry))

    def event(self, name: str, text: str) -> None:
        """Prints what happened to a process."""
        self._print(name, self._now(), "WARNING", text)

    def say(self, text: str = "") -> None:
        # The terminal may be gone; the stack runs on.
        with suppress(OSError):
            print(text, file=self._stream, flush=True)

    def _print(self, name: str, time: str, level: str, text: str) -> None:
        prefix = self._colour(f"{name:<{WIDTH}}", COLOURS.get(name, 0))
        body = "\n".join(map(_visible, (f"{level:<7} {text}" if level else text).split("\n")))
        shown = self._colour(body, RED) if level in ALARMING else body
        for part in shown.split("\n"):
            self.say(f"{time or self._now()} {prefix} {part}")

    def _colour(self, text: str, colour: int) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._coloured and colour else text


def _is_routine(entry: Mapping[str, Any]) -> bool:
    """Returns whether it is a read that succeeded: a client that polls would bury everything else."""
    method = str(entry.get("method", "")).rpartition("/")[2]
    return entry.get("logger") == CALLS and entry.get("code") == "OK" and method.startswith(READS)


def _read(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """Returns time of day, level and text."""
    text = _visible(_TEXTS.get(str(entry.get("logger")), _all_fields)(entry))
    if exception := entry.get("exception"):
        text += f"\n{exception}"
    return _visible(str(entry.get("time", ""))[11:23]), _visible(str(entry.get("level", ""))), text


def _outcome(entry: Mapping[str, Any]) -> str:
    """Returns which post, how late, and its address or why it has none; ids to search for stay in the log."""
    said = [f"{entry.get('draft_id')} on {entry.get('social_account_id')}/{entry.get('channel')}"]
    lateness = entry.get("lateness")
    if isinstance(lateness, int | float) and lateness >= 0:
        said.append(f"{lateness} s late")
    if why := [str(entry[name]) for name in ("reason", "error") if entry.get(name)]:
        said.append(": ".join(why))
    if url := entry.get("url"):
        said.append(str(url))
    return f"{entry['message']}: {', '.join(said)}"


def _call(entry: Mapping[str, Any]) -> str:
    """Returns call, outcome and organization; of a refused call also the request id, which its inner calls share."""
    method, code = str(entry.get("method", "")).rpartition(".")[2], str(entry.get("code"))
    said = [" ".join(str(entry[name]) for name in ("code", "reason", "field") if entry.get(name))]
    said.append(f"{entry.get('duration_ms')} ms")
    if organization_id := entry.get("organization_id"):
        said.append(str(organization_id))
    if code != "OK":
        said.append(f"request {entry.get('request_id')}")
    return f"{method}: {', '.join(said)}"


def _all_fields(entry: Mapping[str, Any]) -> str:
    extra = "".join(f" {name}={_short(value)}" for name, value in entry.items() if name not in SHOWN_ELSEWHERE)
    return f"{entry['message']}{extra}"


_TEXTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {OUTCOMES: _outcome, CALLS: _call}


def _json(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _short(value: object) -> str:
    bare = isinstance(value, str) and value and " " not in value and value.isprintable()
    return str(value) if bare else json.dumps(value, default=str)


def _visible(text: str) -> str:
    """Returns the text with control characters and line ends escaped, so that a terminal does not obey them."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\t" else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
