"""The programs of the README run, and its tables list every option and column."""

import asyncio
import os
import re
import signal
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

import jobkit
from jobkit.config import Config
from jobkit.job import Job
from jobkit.scheduler import Scheduler
from jobkit.stores.columns import SqlColumns
from jobkit.stores.memory import MemoryStore
from servicekit.pg.database import async_url
from servicekit.run.loops import Background
from testkit.jobs import create_table

README = Path(jobkit.__file__).with_name("README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


async def test_every_program_of_the_readme_runs(empty_database: str, tmp_path: Path) -> None:
    engine = create_async_engine(async_url(empty_database))
    await create_table(engine)
    await engine.dispose()
    in_memory, on_a_table, adding = PROGRAMS
    url = async_url(empty_database).render_as_string(hide_password=False)
    printed = await interrupted(in_memory, tmp_path, url, signal.SIGINT, after=("hello 2", "tick 2"))
    assert "Traceback" not in printed
    printed = await interrupted(on_a_table, tmp_path, url, signal.SIGTERM, after=("to ada",))
    assert printed == "to ada\n"
    printed = await interrupted(adding, tmp_path, url, None, after=())
    assert re.fullmatch(r"report next at 2\S+ \S+\nwelcome is paused: True\n", printed)


async def interrupted(
    program: str, folder: Path, url: str, number: signal.Signals | None, *, after: tuple[str, ...]
) -> str:
    """Runs a program from a file, sends it a signal once it has printed these texts, and returns all its output."""
    file = folder / "pasted.py"
    file.write_text(program)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, file),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | {"DATABASE_URL": url},
    )
    assert process.stdout is not None
    printed = ""
    try:
        async with asyncio.timeout(60):
            while not all(text in printed for text in after):
                line = await process.stdout.readline()
                assert line, printed
                printed += line.decode()
            if number is not None:
                process.send_signal(number)
            printed += (await process.stdout.read()).decode()
            assert await process.wait() == 0, printed
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return printed


def test_the_readme_lists_every_option() -> None:
    _, options = README.split("\n## Options\n")
    listed = re.findall(r"^\| `(\w+)` \|", options.split("\n## ")[0], re.MULTILINE)
    assert [option.name for option in fields(Config)] == listed


@pytest.mark.parametrize("column", [column.name for column in fields(SqlColumns)])
def test_the_table_of_the_readme_has_every_column(column: str) -> None:
    (table,) = re.findall(r"```sql\n(create table job .*?)```", README, re.DOTALL)
    assert re.search(rf"^    {column} +\w", table, re.MULTILINE)


async def test_a_scheduler_is_a_background_part_of_a_process() -> None:
    async def do(job: Job) -> None:
        raise AssertionError("there is no job")

    part: Background = Scheduler(Config(store=MemoryStore(), on_document=do, name="jobs"))
    stop = asyncio.Event()
    stop.set()
    await part.run(stop)
    assert part.name == "jobs"
