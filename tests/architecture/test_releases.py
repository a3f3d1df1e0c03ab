"""A release leaves a section in the CHANGELOG, an image of its protos and the digests of its migrations."""

import re
import shutil
import subprocess
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
OFFENCES = {
    "a field is gone": ("drafts/v1/draft.proto", "  int64 revision = 4;\n", ""),
    "a field has another number": ("drafts/v1/draft.proto", "bool approved = 6", "bool approved = 60"),
    "a field has another name": ("queue/v1/queue_events.proto", "string slot_id", "string queue_slot_id"),
    "a field has another type": ("queue/v1/publish_command.proto", "int32 emission", "int64 emission"),
    "an RPC is gone": (
        "drafts/v1/drafts_service.proto",
        "  rpc GetDraft(GetDraftRequest) returns (GetDraftResponse);\n",
        "",
    ),
    "a value is gone": ("queue/v1/queue_slot.proto", "  QUEUE_SLOT_STATE_MISSED = 6;\n", ""),
}


@pytest.fixture(scope="module")
def changelog(root: Path) -> list[str]:
    return (root / "CHANGELOG.md").read_text().splitlines()


@pytest.fixture
def protos(root: Path, tmp_path: Path) -> Path:
    return shutil.copytree(root / "protos", tmp_path / "protos")


def test_the_protos_only_grow(root: Path) -> None:
    done = breaking(root, root / "protos")
    assert done.returncode == 0, done.stdout


def test_a_new_field_is_no_break(root: Path, protos: Path) -> None:
    file = protos / "postflow/drafts/v1/draft.proto"
    file.write_text(file.read_text().replace("  int64 revision = 4;\n", "  int64 revision = 4;\n  string mood = 99;\n"))
    assert breaking(root, protos).returncode == 0


@pytest.mark.parametrize("offence", OFFENCES)
def test_a_break_is_refused(root: Path, protos: Path, offence: str) -> None:
    name, before, after = OFFENCES[offence]
    file = protos / "postflow" / name
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    done = breaking(root, protos)
    assert done.returncode != 0
    assert Path(name).name in done.stdout


def test_the_changelog_has_a_section_for_each_version(changelog: list[str]) -> None:
    sections = [line.removeprefix("## ") for line in changelog if line.startswith("## ")]
    assert sections[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", section) for section in sections[1:])
    assert sections[1:] == sorted(sections[1:], key=numbers, reverse=True)
    assert {line.removeprefix("### ") for line in changelog if line.startswith("### ")} <= KINDS


def test_an_entry_of_the_changelog_is_a_line(changelog: list[str]) -> None:
    first = changelog.index("## Unreleased")
    entries = [line for line in changelog[first:] if line and not line.startswith("#")]
    assert [line for line in entries if not line.startswith("- ")] == []
    assert [line for line in entries if len(line) > 200] == []


def test_every_released_version_has_the_image_of_its_protos(root: Path, changelog: list[str]) -> None:
    released = {line.removeprefix("## ") for line in changelog if re.match(r"## \d", line)}
    assert {file.stem.removeprefix("v") for file in (root / "protos/released").iterdir()} == released
    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"] in released


def test_released_migrations_are_not_edited(root: Path) -> None:
    """Databases that have run them would not notice."""
    released: dict[str, str] = {}
    for file in Path(__file__).parent.glob("migrations-v*.txt"):
        released |= {path: digest for digest, path in map(str.split, file.read_text().splitlines())}
    assert len(released) > 20
    found = {path: sha256((root / path).read_bytes()).hexdigest() for path in released if (root / path).exists()}
    assert found == released


def breaking(root: Path, protos: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / "tools/breaking", protos], capture_output=True, text=True, check=False)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
