"""The glossary is true: its diagrams are those of the code, its counters and messages exist."""

import re
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from sqlalchemy import MetaData

SERVICES = ("drafts", "publisher", "queue", "schedule")
COUNTERS = {
    "attempts",
    "content_revision",
    "edit_version",
    "emission",
    "fence",
    "revision",
    "run",
    "sequence",
    "slot_revision",
    "version",
}
ARROW = re.compile(r"(\w+)\s*(-->>|->>|-\))\s*(\w+): (\w+)")


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs/words.md").read_text()


@pytest.fixture(scope="module")
def protos(root: Path) -> list[FileDescriptorProto]:
    shipped = FileDescriptorSet.FromString((root / "libs/postflow/postflow.binpb").read_bytes())
    return [file for file in shipped.file if file.package.startswith("postflow.")]


@pytest.fixture(scope="module")
def tables() -> Mapping[str, MetaData]:
    return {service: import_module(f"{service}_service.adapters.postgres.tables").metadata for service in SERVICES}


def test_diagrams_are_those_of_the_code(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", root / "tools/diagrams", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_diagrams_have_no_character_that_mermaid_ends_a_line_at(page: str) -> None:
    """A second colon in a label of a state diagram, a semicolon or a # anywhere: the page would show an error."""
    diagrams = re.findall(r"```mermaid\n(.*?)```", page, re.DOTALL)
    assert len(diagrams) > 3
    for diagram in diagrams:
        lines = diagram.splitlines()
        assert [line for line in lines if ";" in line or "#" in line] == []
        assert lines[0] == "sequenceDiagram" or [line for line in lines if line.count(":") > 1] == []


def test_a_changed_diagram_is_noticed(root: Path, tmp_path: Path, page: str) -> None:
    for folder in ("tools", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tools/diagrams").write_text((root / "tools/diagrams").read_text())
    (tmp_path / "docs/words.md").write_text(page.replace("PENDING --> SENDING", "PENDING --> READY"))
    done = subprocess.run(
        [sys.executable, tmp_path / "tools/diagrams", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "run .venv/bin/python tools/diagrams" in done.stderr


def test_every_counter_exists_where_the_page_says(
    page: str, tables: Mapping[str, MetaData], protos: list[FileDescriptorProto]
) -> None:
    table = page.partition("## The counters")[2].partition("\n## ")[0]
    columns = re.findall(rf"`({'|'.join(SERVICES)})\.(\w+)\.(\w+)`", table)
    fields = re.findall(r"`([A-Z]\w+)\.(\w+)`", table)
    known = {(message.name, field.name) for file in protos for message in file.message_type for field in message.field}
    missing = [each for each in columns if each[1] not in tables[each[0]].tables]
    missing += [each for each in columns if each not in missing and each[2] not in tables[each[0]].tables[each[1]].c]
    assert missing == []
    assert [field for field in fields if field not in known] == []
    assert {column for _, _, column in columns} >= COUNTERS


def test_every_counter_of_a_table_stands_on_the_page(page: str, tables: Mapping[str, MetaData]) -> None:
    """Counters of the tables that every service has are explained in `servicekit`."""
    counting = {
        (service, table.name, column.name)
        for service, metadata in tables.items()
        for table in metadata.tables.values()
        for column in table.columns
        if column.name in COUNTERS | {"job_version", "schedule_version", "slot_sequence"}
    }
    copies = {
        ("drafts", "post_job_event", "version"),
        ("publisher", "kept_content", "revision"),
        ("publisher", "preparation", "run"),
        ("publisher", "resolution", "run"),
    }
    silent = [each for each in counting - copies if f"`{'.'.join(each)}`" not in page]
    assert sorted(silent) == []


def test_every_message_of_the_sequence_is_one_of_the_protos(page: str, protos: list[FileDescriptorProto]) -> None:
    rpcs = {
        method.name: file.package.split(".")[1]
        for file in protos
        for service in file.service
        for method in service.method
    }
    messages = {message.name: file.package.split(".")[1] for file in protos for message in file.message_type}
    sequence = page.partition("sequenceDiagram")[2].partition("```")[0]
    arrows = [arrow for arrow in ARROW.findall(sequence) if "provider" not in arrow and arrow[1] != "-->>"]
    assert len(arrows) > 15
    for source, arrow, target, name in arrows:
        if arrow == "->>":
            assert rpcs.get(name) == target, f"{target} does not serve {name}"
        else:
            assert messages.get(name) == source, f"{source} does not announce {name}"


def test_the_states_of_the_sequence_are_states(page: str, protos: list[FileDescriptorProto]) -> None:
    sequence = page.partition("sequenceDiagram")[2].partition("```")[0]
    values = {value.name for file in protos for enum in file.enum_type for value in enum.value}
    states = {value.rpartition("_STATE_")[2] for value in values} | values | {"EVENTS", "PUBLISH"}
    assert set(re.findall(r"\b[A-Z][A-Z_]{3,}\b", sequence)) <= states
