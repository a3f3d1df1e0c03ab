import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from servicekit.run import Secret, context, logs, telemetry
from servicekit.run.settings import LogLevel

COLLECTED = ("_srcfile", "logThreads", "logProcesses", "logMultiprocessing")


class Written:
    def __init__(self) -> None:
        self.stream = io.StringIO()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def written() -> Iterator[Written]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in ("grpc", "nats", "sqlalchemy", "asyncpg")}
    collected = {name: getattr(logging, name) for name in COLLECTED}
    output = Written()
    logs.configure("queue", LogLevel.INFO, output.stream)
    yield output
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)
    for name, was in collected.items():
        setattr(logging, name, was)
    logging.captureWarnings(capture=False)


def test_a_line_is_one_json_object_with_what_was_given(written: Written) -> None:
    logging.getLogger("some.place").info("did %s", "it", extra={"slot": 7})
    (line,) = written.lines()
    assert datetime.fromisoformat(line.pop("time")).tzinfo is not None
    assert line == {"level": "INFO", "service": "queue", "logger": "some.place", "message": "did it", "slot": 7}


def test_a_line_has_request_organization_and_trace(written: Written) -> None:
    request, organization = context.request_id.set("r-1"), context.organization_id.set("acme")
    caller = telemetry.parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    assert caller
    token = attach(set_span_in_context(NonRecordingSpan(caller)))
    logging.getLogger().warning("x")
    detach(token)
    context.request_id.reset(request)
    context.organization_id.reset(organization)
    (line,) = written.lines()
    assert (line["request_id"], line["organization_id"]) == ("r-1", "acme")
    assert line["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize("text", ["a\r\n{}", "\x1b[31m", "\u2028", "\ud800", '"},{"'])
def test_no_text_breaks_out_of_its_line(written: Written, text: str) -> None:
    logging.getLogger().warning("said %s", text, extra={"who": text})
    (line,) = written.lines()
    assert line["message"] == f"said {text}"
    assert line["who"] == text
    assert written.stream.getvalue().isascii()


def test_a_secret_is_not_written(written: Written) -> None:
    logging.getLogger().warning("%s", Secret("hunter2"), extra={"key": Secret("hunter2"), "keys": [Secret("hunter2")]})
    assert "hunter2" not in written.stream.getvalue()
    assert written.lines()[0]["key"] == "***"


def test_an_exception_is_part_of_its_line(written: Written) -> None:
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger().exception("failed")
    (line,) = written.lines()
    assert "ValueError: why" in line["exception"]


def test_a_value_of_another_type_is_written_as_text(written: Written) -> None:
    logging.getLogger().warning(
        "x", extra={"seen": {("a", 1): 2}, "when": timedelta(seconds=1), "error": KeyError("k")}
    )
    (line,) = written.lines()
    assert line["error"] == "'k'"


def test_libraries_log_only_warnings(written: Written) -> None:
    logging.getLogger("sqlalchemy.engine").info("SELECT 1")
    logging.getLogger("nats.aio").info("hello")
    logging.getLogger("grpc._cython").warning("trouble")
    assert [line["message"] for line in written.lines()] == ["trouble"]


def test_below_the_level_nothing_is_written(written: Written) -> None:
    logging.getLogger("x").debug("quiet")
    assert written.lines() == []


def test_without_a_span_there_is_no_trace_id(written: Written) -> None:
    token = attach(trace.set_span_in_context(trace.INVALID_SPAN, Context()))
    logging.getLogger().warning("x")
    detach(token)
    assert "trace_id" not in written.lines()[0]


def test_fields_and_lines_have_limits(written: Written) -> None:
    try:
        raise ValueError("y" * 100_000)
    except ValueError:
        logging.getLogger().exception("m" * 200_000, extra={"organization_id": "x" * 200_000, "short": "z" * 1000})
    logging.getLogger().info("many", extra={f"field{number}": "x" * 1000 for number in range(100)})
    logging.getLogger().info("deep", extra={"deep": ["x" * 100_000]})
    first, many, deep = written.lines()
    assert first["message"] == "m" * 1000 + "... 200000 characters"
    assert first["organization_id"] == "x" * 1000 + "... 200000 characters"
    assert first["short"] == "z" * 1000
    assert first["exception"].startswith("Traceback")
    assert first["exception"].endswith("y" * 4000)
    assert (many["message"], deep["message"]) == ("many", "deep")
    assert "characters" in many["cut"]
    assert all(len(line) <= 32_000 for line in written.stream.getvalue().splitlines())


def test_control_characters_are_escaped(written: Written) -> None:
    logging.getLogger().info("\x1b[2J\x07\nFAKE", extra={"organization_id": "\x9b\u202e\x00"})
    assert written.stream.getvalue().rstrip("\n").isprintable()
