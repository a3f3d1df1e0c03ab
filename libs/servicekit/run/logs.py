"""Logs JSON lines to stderr: one object per line, no matter what a value contains."""

import json
import logging
import sys
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TextIO

from opentelemetry import trace

from servicekit.run import context
from servicekit.run.settings import LogLevel

_NOISY = ("alembic", "asyncio", "asyncpg", "grpc", "nats", "opentelemetry", "sqlalchemy")
_FRESH = len(logging.makeLogRecord({}).__dict__)  # the attributes of a new record, before those of `extra`
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}
_LONGEST_FIELD = 1000  # characters
_LONGEST_STACK = 8000
_LONGEST_LINE = 32_000  # encoded; log collectors limit lines, too
_ALWAYS = frozenset({"time", "level", "service", "logger", "message", "request_id", "organization_id", "trace_id"})
# Types that JSON does not know, such as a Secret, are shown as str(). Making an encoder costs as much as a line.
_encode = json.JSONEncoder(default=str, skipkeys=True).encode


def configure(service: str, level: LogLevel, stream: TextIO | None = None) -> None:
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(service))
    root = logging.getLogger()
    root.setLevel(level)
    root.handlers[:] = [handler]
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))
    logging.captureWarnings(capture=True)
    _collect_less()


def _collect_less() -> None:
    """Skips what our lines do not show: a third of the cost of a line (Logging HOWTO, Optimization)."""
    logging._srcfile = None  # noqa: SLF001 - the documented way
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


class JsonFormatter(logging.Formatter):
    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(_work())
        given = islice(record.__dict__.items(), _FRESH, None)
        line.update((key, value) for key, value in given if key not in _STANDARD)
        if record.exc_info:
            line["exception"] = _cut(self.formatException(record.exc_info), _LONGEST_STACK)
        encoded = _encode(line)
        return encoded if len(encoded) <= _LONGEST_FIELD else _bounded(line)


def _bounded(line: dict[str, Any]) -> str:
    """Limits the length of a line and of its fields. The encoder has already escaped all control characters."""
    line = {key: _cut(value, _LONGEST_FIELD) if key != "exception" else value for key, value in line.items()}
    encoded = _encode(line)
    if len(encoded) <= _LONGEST_LINE:
        return encoded
    kept = {key: value for key, value in line.items() if key in _ALWAYS}
    return _encode({**kept, "cut": f"{len(encoded)} characters"})


def _cut(value: Any, longest: int) -> Any:
    """Returns the beginning of a long text and, for a stack, its end too, where the error is."""
    if not isinstance(value, str) or len(value) <= longest:
        return value
    mark, head = f"... {len(value)} characters", longest // 2
    return f"{value[:head]}{mark} ... {value[-head:]}" if longest > _LONGEST_FIELD else f"{value[:longest]}{mark}"


def _work() -> dict[str, str]:
    """Returns the request, organization and trace that the line belongs to, as far as they are known."""
    found: dict[str, str] = {}
    if request_id := context.request_id.get():
        found["request_id"] = request_id
    if organization_id := context.organization_id.get():
        found["organization_id"] = organization_id
    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        found["trace_id"] = trace.format_trace_id(span.trace_id)
    return found
