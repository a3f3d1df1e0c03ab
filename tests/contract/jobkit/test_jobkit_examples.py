"""The examples run to their end, and the README says what is so."""

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

FOLDER = Path(jobkit.__file__).parent
README = (FOLDER / "README.md").read_text()


async def run(example: str, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        FOLDER / "examples" / example,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(100):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    said = output.decode()
    assert process.returncode == 0, said
    return said


async def test_the_example_in_memory_runs_by_itself() -> None:
    said = await run("memory.py")
    assert len(re.findall("^recurring: ", said, re.MULTILINE)) >= 2
    assert re.search(r"^shaky: .*, attempt 2$", said, re.MULTILINE)
    assert said.endswith("done: at once removed, shaky kept\n")


async def test_the_example_on_a_database_leaves_nothing_behind(empty_database: str) -> None:
    url = async_url(empty_database).render_as_string(hide_password=False)
    for _ in range(2):
        said = await run("sql.py", url)
        assert len(re.findall("^stand up: ", said, re.MULTILINE)) >= 3
        assert len(re.findall("^drink something: ", said, re.MULTILINE)) == 1
        assert "business" not in said
        assert said.endswith("done\n")


async def test_the_example_brings_its_own_server_if_there_is_none() -> None:
    assert (await run("sql.py")).endswith("done\n")


PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


async def test_every_program_of_the_readme_runs_as_it_stands(empty_database: str, tmp_path: Path) -> None:
    engine = create_async_engine(async_url(empty_database))
    await create_table(engine)
    await engine.dispose()
    in_memory, on_a_table, adding = PROGRAMS
    url = async_url(empty_database).render_as_string(hide_password=False)
    said = await interrupted(in_memory, tmp_path, url, signal.SIGINT, after=("hello 2", "tick 2"))
    assert "Traceback" not in said
    said = await interrupted(on_a_table, tmp_path, url, signal.SIGTERM, after=("to ada",))
    assert said == "to ada\n"
    said = await interrupted(adding, tmp_path, url, None, after=())
    assert re.fullmatch(r"report next at 2\S+ \S+\nwelcome is paused: True\n", said)


async def interrupted(
    program: str, folder: Path, url: str, number: signal.Signals | None, *, after: tuple[str, ...]
) -> str:
    """What a program printed that was pasted into a file, and interrupted after it had printed these."""
    file = folder / "pasted.py"
    file.write_text(program)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, file),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | {"DATABASE_URL": url},
    )
    assert process.stdout is not None
    said = ""
    try:
        async with asyncio.timeout(60):
            while not all(text in said for text in after):
                line = await process.stdout.readline()
                assert line, said
                said += line.decode()
            if number is not None:
                process.send_signal(number)
            said += (await process.stdout.read()).decode()
            assert await process.wait() == 0, said
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said


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
        raise AssertionError("there is none")

    part: Background = Scheduler(Config(store=MemoryStore(), on_document=do, name="jobs"))
    stop = asyncio.Event()
    stop.set()
    await part.run(stop)
    assert part.name == "jobs"
