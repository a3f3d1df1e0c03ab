import io
import json

from devstack.commands.render import Printer


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


def test_a_line_that_is_not_json_is_shown_unchanged() -> None:
    for line in ("plain text", "{not json", "[1]", '{"no": "message"}'):
        assert _printed("drafts", line) == f"12:00:00.000 drafts    {line}\n"


def test_colours_only_on_a_terminal_and_only_when_wanted() -> None:
    assert "\x1b[" not in _printed("queue", _json())
    assert "\x1b[33mqueue" in _printed("queue", _json(), Terminal())
    assert "\x1b[31mERROR" in _printed("queue", _json(level="ERROR"), Terminal())
    assert "\x1b[" not in _printed("queue", _json(), Terminal(), {"NO_COLOR": ""})


def test_routine_lines_of_the_servers_are_left_out() -> None:
    assert _printed("postgres", "LOG:  database system is ready to accept connections") == ""
    assert _printed("nats", "[1] 2026/11/18 11:56:13 [INF] Server is ready") == ""
    assert _printed("queue", "") == ""
    assert "FATAL" in _printed("postgres", "FATAL:  no")
    assert "[ERR]" in _printed("nats", "[1] 2026/11/18 11:56:13 [ERR] no")


def test_events_are_shown_with_the_time() -> None:
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


def _outcome(message: str, **fields: object) -> str:
    named = {"organization_id": "acme", "post_job_id": "j1", "draft_id": "d1", "social_account_id": "page"}
    logger = "publisher_service.application.post_log"
    return _json(logger=logger, message=message, **named, channel="facebook", run=1, attempt=2, trace_id="7f", **fields)


def test_a_published_post_is_one_short_line() -> None:
    line = _outcome("post published", level="DEBUG", lateness=0.125, url="http://sandbox/p1")
    assert _printed("publisher", line) == (
        "09:00:00.125 publisher DEBUG   post published: d1 on page/facebook, 0.125 s late, http://sandbox/p1\n"
    )


def test_an_unpublished_post_says_why() -> None:
    line = _outcome("post waiting", lateness=3.5, reason="RETRY", error="no answer")
    assert _printed("publisher", line).endswith("post waiting: d1 on page/facebook, 3.5 s late, RETRY: no answer\n")
    line = _outcome("post failed", level="WARNING", reason="REJECTED")
    assert _printed("publisher", line).endswith("WARNING post failed: d1 on page/facebook, REJECTED\n")


def test_a_post_canceled_ahead_of_its_time_is_not_late() -> None:
    line = _outcome("post canceled", lateness=-60, reason="TARGET_REMOVED")
    assert _printed("publisher", line).endswith("post canceled: d1 on page/facebook, TARGET_REMOVED\n")


def test_nothing_in_the_fields_of_an_outcome_reaches_the_terminal_raw() -> None:
    printed = _printed("publisher", _outcome("post failed", reason="R", error="evil\x1b[2J\nFAKE"))
    assert printed.count("\n") == 1
    assert printed.rstrip("\n").isprintable()


def _call(method: str, code: str = "OK") -> str:
    return _json(
        message="call", logger="servicekit.rpc.access", method=f"postflow.drafts.v1.DraftsService/{method}", code=code
    )


def test_reads_that_succeed_are_left_out() -> None:
    """A client that polls would bury everything else."""
    for method in ("GetDraft", "ListDrafts", "FindSlotTimes", "CheckSendWindow"):
        assert _printed("drafts", _call(method)) == ""
        assert "NOT_FOUND" in _printed("drafts", _call(method, "NOT_FOUND"))
    assert "CreateDraft" in _printed("drafts", _call("CreateDraft"))


def test_a_call_is_one_short_line_with_what_is_wrong() -> None:
    named = {
        "request_id": "r1",
        "trace_id": "7f",
        "organization_id": "acme",
        "peer": "ipv4:127.0.0.1:5",
        "duration_ms": 7.5,
    }
    called = {
        "message": "call",
        "logger": "servicekit.rpc.access",
        "method": "postflow.queue.v1.QueueService/ScheduleAt",
    }
    assert _printed("queue", _json(**called, **named, code="OK")) == (
        "09:00:00.125 queue     INFO    QueueService/ScheduleAt: OK, 7.5 ms, acme\n"
    )
    refused = _json(**called, **named, code="INVALID_ARGUMENT", reason="INVALID_FIELD", field="schedule_time")
    assert _printed("queue", refused).endswith(
        "QueueService/ScheduleAt: INVALID_ARGUMENT INVALID_FIELD schedule_time, 7.5 ms, acme, request r1\n"
    )


def test_text_in_any_script_is_shown_unchanged() -> None:
    assert "Grüße 日本 👍🏽" in _printed("queue", _json(message="Grüße 日本 👍🏽"))
