"""Alerts and dashboard name metrics that the code has, and every metric says what it is."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

KINDS = {"create_counter": "_total", "create_gauge": "", "Histogram": ""}
UNITS = {"s": "_seconds", "{error}": "", "": ""}
SERIES_OF_A_HISTOGRAM = ("_bucket", "_count", "_sum")
# Of Prometheus itself: whether a process answered.
NOT_OF_THE_CODE = {"up"}
# Counted from 0, and nobody has to act on them.
FOR_INFORMATION = {
    "postflow_dead_letters_redriven_total",
    "postflow_drafts_state_changes_total",
    "postflow_drafts_withdrawals_completed_total",
    "postflow_events_applied_total",
    "postflow_publish_outcomes_total",
    "postflow_queue_slots_moved_total",
    "postflow_timer_fired_total",
}
METRIC = re.compile(r"\b(?:postflow|rpc_server|loop)_[a-z_]+[a-z]\b|\bup\b")
LINE = re.compile(r'( *)(- )?(\w+):(?: ("(?:[^"\\]|\\.)*"))?')


class Instrument(NamedTuple):
    name: str
    shown: str
    """As Prometheus shows it."""
    kind: str
    description: str
    from_zero: bool
    place: str


@pytest.fixture(scope="module")
def instruments(modules: Mapping[Path, ast.Module], root: Path) -> list[Instrument]:
    return [
        instrument(call, id(call) in guarded, f"{file.relative_to(root)}:{call.lineno}")
        for file, module in modules.items()
        if not file.is_relative_to(root / "tests") and not file.is_relative_to(root / "benchmarks")
        for guarded in [started_at_zero(module)]
        for call in created(module)
    ]


@pytest.fixture(scope="module")
def shown(instruments: list[Instrument]) -> set[str]:
    series = {each.shown for each in instruments}
    return series | {
        each.shown + part for each in instruments if each.kind == "Histogram" for part in SERIES_OF_A_HISTOGRAM
    }


@pytest.fixture(scope="module")
def alerts(root: Path) -> list[dict[str, Any]]:
    parsed = read_yaml((root / "deploy/monitoring/alerts.yaml").read_text())
    return [rule for group in parsed["groups"] for rule in group["rules"]]


@pytest.fixture(scope="module")
def queries(root: Path) -> list[str]:
    dashboard = json.loads((root / "deploy/monitoring/dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def test_every_metric_says_what_it_is(instruments: list[Instrument]) -> None:
    assert len(instruments) > 50
    assert [each.place for each in instruments if len(each.description.strip(" .")) < 10] == []
    assert [each.place for each in instruments if not re.fullmatch(r"(postflow|rpc|loop)(\.[a-z_]+)+", each.name)] == []


def test_no_histogram_is_made_by_the_sdk(modules: Mapping[Path, ast.Module], root: Path) -> None:
    """`servicekit.run.histograms` costs a post a twentieth of that."""
    calls = [
        f"{file.relative_to(root)}:{node.lineno}"
        for file, module in modules.items()
        if not file.is_relative_to(root / "tests")
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and kind(node) == "create_histogram"
    ]
    assert calls == []


def test_a_histogram_belongs_to_its_module(modules: Mapping[Path, ast.Module], root: Path) -> None:
    scopes = [
        ast.unparse(word.value)
        for file, module in modules.items()
        if not file.is_relative_to(root / "tests")
        for call in created(module)
        if kind(call) == "Histogram"
        for word in call.keywords
        if word.arg == "scope"
    ]
    assert set(scopes) == {"__name__"}


def test_a_metric_of_one_name_is_one_thing(instruments: list[Instrument]) -> None:
    things: dict[str, set[str]] = {}
    for each in instruments:
        things.setdefault(each.name, set()).add(each.kind + each.shown)
    assert {name: kinds for name, kinds in things.items() if len(kinds) > 1} == {}


def test_alerts_name_metrics_of_the_code(alerts: list[dict[str, Any]], shown: set[str]) -> None:
    assert len(alerts) > 30
    for alert in alerts:
        named = set(METRIC.findall(alert["expr"]))
        assert named, alert["alert"]
        assert named <= shown | NOT_OF_THE_CODE, alert["alert"]


def test_an_alert_says_what_to_do(root: Path, alerts: list[dict[str, Any]]) -> None:
    assert len({alert["alert"] for alert in alerts}) == len(alerts)
    for alert in alerts:
        assert alert.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert alert["labels"]["severity"] in {"page", "ticket"}
        assert re.fullmatch(r"\d+[smh]", alert.get("for", "1m"))
        assert alert["annotations"]["summary"].endswith((".", "?"))
        document, _, anchor = alert["annotations"]["runbook"].partition("#")
        headings = re.findall(r"^#+ (.+)$", (root / document).read_text(), re.MULTILINE)
        assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, alert["alert"]


def test_a_metric_of_an_alert_stands_in_a_runbook(root: Path, alerts: list[dict[str, Any]]) -> None:
    """The end-to-end tests read the runbooks, and expect each of their metrics from the start of a process."""
    runbooks = [*root.glob("services/*/README.md"), root / "libs/servicekit/README.md"]
    explained = set().union(*(METRIC.findall(runbook.read_text()) for runbook in runbooks))
    series = {name for alert in alerts for name in METRIC.findall(alert["expr"])} - NOT_OF_THE_CODE
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in series} - explained == set()


def test_what_must_stay_zero_has_an_alert(instruments: list[Instrument], alerts: list[dict[str, Any]]) -> None:
    """A counter is shown from 0 so that an alert sees its first event: then there is one."""
    watched = {name for alert in alerts for name in METRIC.findall(alert["expr"])}
    rare = {each.shown for each in instruments if each.from_zero} - FOR_INFORMATION
    assert rare - watched == set()


def test_the_dashboard_shows_every_metric_and_no_other(
    queries: list[str], instruments: list[Instrument], shown: set[str]
) -> None:
    named = {name for query in queries for name in METRIC.findall(query)}
    assert named <= shown
    assert {each.shown for each in instruments} <= {re.sub(r"_(bucket|count)$", "", name) for name in named}


@pytest.mark.parametrize(
    "text",
    [
        "groups:\n  - name: unquoted",
        'groups:\n\t- name: "tab"',
        'groups:\n   - name: "odd"',
        'groups:\n  - name: "open',
    ],
    ids=["unquoted", "tab", "indentation", "open string"],
)
def test_a_file_that_only_yaml_parsers_may_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        read_yaml(text)


def created(module: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(module) if isinstance(node, ast.Call) and kind(node) in KINDS)


def kind(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def started_at_zero(module: ast.Module) -> set[int]:
    """The calls that make a counter inside `from_zero(...)`, or one whose name is passed to it."""
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and ast.unparse(node.func) == "from_zero"]
    names = {ast.unparse(call.args[0]) for call in calls}
    direct = {id(argument) for call in calls for argument in ast.walk(call)}
    assigned = {
        id(node.value)
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and {ast.unparse(target) for target in node.targets} & names
    }
    return direct | assigned


def instrument(call: ast.Call, from_zero: bool, place: str) -> Instrument:
    given = {word.arg: word.value for word in call.keywords}
    name = ast.literal_eval(call.args[0])
    unit = ast.literal_eval(given["unit"]) if "unit" in given else ""
    description = given.get("description", ast.Constant(""))
    suffix = UNITS[unit] + KINDS[kind(call)]
    return Instrument(
        name, name.replace(".", "_") + suffix, kind(call), ast.unparse(description).strip("'\"f"), from_zero, place
    )


def read_yaml(text: str) -> Any:
    """Reads the part of YAML that needs no parser: maps and lists by two spaces, and scalars as JSON strings."""
    lines = [
        (number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")
    ]
    value, rest = read_block(lines, 0)
    if rest:
        raise ValueError(f"line {rest[0][0]}: unexpected indentation")
    return value


Lines = list[tuple[int, str]]


def read_block(lines: Lines, depth: int) -> tuple[Any, Lines]:
    """Reads the lines of one depth; the others are returned."""
    is_list = bool(lines) and lines[0][1].startswith(" " * depth + "- ")
    items: list[Any] = []
    mapping: dict[str, Any] = {}
    while lines and (parts := LINE.fullmatch(lines[0][1])) and len(parts[1]) == depth and bool(parts[2]) == is_list:
        if is_list:
            number, line = lines[0]
            item, lines = read_block([(number, line.replace("- ", "  ", 1)), *lines[1:]], depth + 2)
            items.append(item)
            continue
        lines = lines[1:]
        if parts[4] is not None:
            mapping[parts[3]] = json.loads(parts[4])
        else:
            mapping[parts[3]], lines = read_block(lines, depth + 2)
    if not items and not mapping:
        raise ValueError(f"line {lines[0][0]}: {lines[0][1]!r}" if lines else "the end is missing")
    return items or mapping, lines
