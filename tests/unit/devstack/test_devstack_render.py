import io
import json

from devstack.render import Printer


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _printed(name: str, line: str, stream: io.StringIO | None = None, environ: dict[str, str] | None = None) -> str:
    stream = stream or io.StringIO()
    Printer(stream, lambda: "12:00:00.000", environ=environ or {}).line(name, line)
    return stream.getvalue()


def _json(**fields: object) -> str:
    return json.dumps({"time": "2026-03-02T09:00:00.125+00:00", "level": "INFO", "message": "serving", **fields})


def test_a_json_line_becomes_time_process_level_and_message() -> None:
    assert _printed("queue", _json(service="queue", logger="x")) == "09:00:00.125 queue     INFO    serving\n"


def test_further_fields_follow_the_message() -> None:
    assert _printed("queue", _json(request_id="r1", count=3, text="two words")).endswith(
        'serving request_id=r1 count=3 text="two words"\n'
    )


def test_a_traceback_is_shown_line_by_line_with_the_process_in_front() -> None:
    lines = _printed("queue", _json(exception="Traceback\n  boom")).splitlines()
    assert [line.split("queue     ")[1] for line in lines] == ["INFO    serving", "Traceback", "  boom"]


def test_a_line_that_is_no_json_is_shown_as_it_is() -> None:
    for line in ("plain text", "{not json", "[1]", '{"no": "message"}'):
        assert _printed("drafts", line) == f"12:00:00.000 drafts    {line}\n"


def test_colours_only_on_a_terminal_and_only_when_wanted() -> None:
    assert "\x1b[" not in _printed("queue", _json())
    assert "\x1b[33mqueue" in _printed("queue", _json(), Terminal())
    assert "\x1b[31mERROR" in _printed("queue", _json(level="ERROR"), Terminal())
    assert "\x1b[" not in _printed("queue", _json(), Terminal(), {"NO_COLOR": ""})


def test_what_the_servers_say_when_all_is_well_is_left_out() -> None:
    assert _printed("postgres", "LOG:  database system is ready to accept connections") == ""
    assert _printed("nats", "[1] 2026/11/18 11:56:13 [INF] Server is ready") == ""
    assert _printed("queue", "") == ""
    assert "FATAL" in _printed("postgres", "FATAL:  no")
    assert "[ERR]" in _printed("nats", "[1] 2026/11/18 11:56:13 [ERR] no")


def test_events_are_told_with_the_time() -> None:
    stream = io.StringIO()
    Printer(stream, lambda: "12:00:00.000", environ={}).event("queue", "ended")
    assert stream.getvalue() == "12:00:00.000 queue     WARNING ended\n"


def test_nothing_that_a_process_writes_reaches_the_terminal_raw() -> None:
    hostile = "evil\x1b]0;pwned\x07\x1b[2J\nFAKE\x00\x9b\u202e"
    for line in (_json(organization_id=hostile), _json(message=hostile), _json(level=hostile), hostile):
        printed = _printed("queue", line)
        assert printed.count("\n") == 1, "and no line is forged"
        assert printed.rstrip("\n").isprintable(), ascii(printed)
        assert "FAKE" in printed


def test_what_people_write_is_shown_as_it_is() -> None:
    assert "Grüße 日本 👍🏽" in _printed("queue", _json(message="Grüße 日本 👍🏽"))
