"""The README names what the code has: it is read when nobody has time to read the code."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from sqlalchemy import text

import publisher_service
from publisher_service.domain.claim import Verdict
from publisher_service.domain.post_job import JobState, Reason
from publisher_service.domain.settlement import AttemptState
from publisher_service.settings import Settings
from servicekit.pg.database import Database
from topology import StreamSettings

PACKAGE = Path(publisher_service.__file__).parent
README = (PACKAGE.parent / "README.md").read_text()
CODE = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
METRIC = r'"(postflow\.(?:(?:publish|post_jobs)\.[a-z_.]+|account_lines|holds|hold_releases\.[a-z_.]+))"'
STATEMENTS = [re.sub(r"(?m)^  ", "", block) for block in re.findall(r"```sql\n(.*?)```", README, re.DOTALL)]


def test_the_readme_has_its_headings() -> None:
    headings = ["Owns", "Offers", "Consumes", "Emits", "Tables", "Limits", "Runbook"]
    assert re.findall(r"(?m)^## (.*)$", README) == headings


@pytest.mark.parametrize("word", [*JobState, *(reason for reason in Reason if reason), *Verdict, *AttemptState])
def test_every_state_reason_and_verdict_is_explained(word: str) -> None:
    assert re.search(rf"\b{word}\b", README)


def test_every_setting_of_publisher_is_named() -> None:
    shared = {field.name for field in fields(StreamSettings)} - {"listen", "metrics_listen", "grace"}
    own = {field.name for field in fields(Settings)} - shared
    assert not {name for name in own if f"`{name.upper()}`" not in README}


def test_exactly_the_failpoints_and_metrics_are_named() -> None:
    failpoints = set(re.findall(r'declare\("([a-z_.]+)"\)', CODE))
    assert failpoints == set(re.findall(r"`(publisher\.[a-z_.]+)`", README))
    metrics = {name.replace(".", "_") for name in re.findall(METRIC, CODE)}
    named = re.findall(r"`(postflow_(?:(?:publish|post_jobs|hold_releases)_[a-z_]+|account_lines|holds))`", README)
    assert metrics == {re.sub(r"_(total|seconds)$", "", name) for name in named}


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_every_query_runs(database: Database, statement: str) -> None:
    async with database.statement() as connection:
        assert (await connection.execute(text(statement))).all() == []


def test_there_are_queries() -> None:
    assert len(STATEMENTS) == 12
