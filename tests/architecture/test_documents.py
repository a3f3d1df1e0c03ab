"""Documents are true: their commands, links and names."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from devstack.commands.first_post import commands
from devstack.layout import SERVICES, WELL_KNOWN_PORTS, Layout

ADR_HEADINGS = ["Context", "Decision", "Consequences", "Alternatives", "Rule"]
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def documents(files: list[Path]) -> list[Path]:
    return [file for file in files if file.suffix == ".md"]


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text()


def test_links_lead_somewhere(root: Path, documents: list[Path]) -> None:
    broken = []
    for document in documents:
        for link in LINK.findall(document.read_text()):
            file, _, anchor = link.partition("#")
            target = (document.parent / file).resolve() if file else document
            if not link.startswith("https://") and not (target.exists() and (not anchor or anchor in anchors(target))):
                broken.append(f"{document.relative_to(root)}: {link}")
    assert broken == []


def test_paths_in_the_documents_exist(root: Path, documents: list[Path]) -> None:
    """`libs/...` names a file or folder; `<name>` and NNNN stand for several."""
    named = re.compile(r"`((?:libs|services|tests|tools|protos|docs|benchmarks|deploy)/[\w./-]+)`")
    gone = [
        f"{document.relative_to(root)}: {path}"
        for document in documents
        for path in named.findall(document.read_text())
        if not (root / path).exists() and "benchmarks/out" not in path
    ]
    assert gone == []


def test_modules_in_the_documents_exist(root: Path, files: list[Path], documents: list[Path]) -> None:
    """`domain/post_job.py` names a file by the end of its path; NNNN stands for any number."""
    paths = [f"/{file.relative_to(root)}" for file in files if file.suffix == ".py"]
    gone = [
        f"{document.relative_to(root)}: {name}"
        for document in documents
        for name in re.findall(r"`([\w./-]+\.py)`", document.read_text())
        if "NNNN" not in name and not any(path.endswith(f"/{name}") for path in paths)
    ]
    assert gone == []


def test_make_has_every_target_that_the_documents_name(root: Path, documents: list[Path]) -> None:
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE))
    said = re.compile(r"(?:^|`)make (?:PYTHON=\S+ )?([a-z]+)", re.MULTILINE)
    named = {target for document in documents for target in said.findall(document.read_text())}
    assert named
    assert named <= targets


def test_make_help_lists_what_can_be_made(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    explained = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.+)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert phony
    assert explained == set(phony[1].split()) - {"again"}


def test_continuous_integration_runs_what_the_readme_says(root: Path, readme: str) -> None:
    script = (root / ".ci/run").read_text()
    assert "make lint" in script
    assert "make test" in script
    assert re.search(r"^make test ", readme, re.MULTILINE)


def test_the_first_post_of_the_readme_is_the_one_that_make_run_prints(readme: str) -> None:
    assert commands(Layout(WELL_KNOWN_PORTS, {}).targets, ".venv/bin/grpcurl") in readme


def test_the_readme_knows_the_ports(readme: str) -> None:
    for service, port in WELL_KNOWN_PORTS.services.items():
        assert re.search(rf"^\| \[{service}\].* {port} \| {WELL_KNOWN_PORTS.metrics[service]} \|", readme, re.MULTILINE)


def test_the_readme_knows_the_commands_of_the_services(root: Path, readme: str) -> None:
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    assert [script for script in scripts if script != "postflow" and f"`{script}`" not in readme] == []


def test_every_decision_is_numbered_complete_and_listed(root: Path) -> None:
    folder = root / "docs/adr"
    pages = sorted(page for page in folder.glob("*.md") if page.name != "README.md")
    listed = (folder / "README.md").read_text()
    for number, page in enumerate(pages, 1):
        lines = page.read_text().splitlines()
        title = lines[0].removeprefix(f"# {number}. ")
        assert page.name.startswith(f"{number:04}-")
        assert lines[0].startswith(f"# {number}. ")
        assert [line[3:] for line in lines if line.startswith("## ")] == ADR_HEADINGS, page.name
        assert len(lines) <= 60, f"{page.name} is longer than a page"
        assert f"{number}. [{title}]({page.name})" in listed


def test_names_in_the_rule_of_a_decision_exist(root: Path, files: list[Path]) -> None:
    """`job_id` and `publisher_service.domain.post_job.job_id` name something in the code, wherever it is."""
    code = [file for file in files if file.suffix in {".py", ".proto", ".toml", ""} and file.parent.name != "released"]
    words = {word for file in code for word in re.findall(r"\w+", file.read_text())}
    gone = [
        f"{page.name}: {name}"
        for page in (root / "docs/adr").glob("0*.md")
        for name in re.findall(r"`([A-Za-z_][\w.]*)`", page.read_text().partition("## Rule")[2])
        if not name.endswith(".py") and not words.issuperset(name.split("."))
    ]
    assert gone == []


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("service", SERVICES)
def test_the_decision_about_retention_names_every_table(root: Path, service: str) -> None:
    (page,) = (root / "docs/adr").glob("*-what-is-kept-and-for-how-long.md")
    named = set(re.findall(r"`([a-z_]+)`", page.read_text()))
    assert set(import_module(f"{service}_service.adapters.postgres.tables").metadata.tables) <= named
