"""Each program in examples/jobkit runs to its end."""

import asyncio
import re
import sys
from pathlib import Path

from servicekit.pg.database import async_url

EXAMPLES = Path(__file__).parents[3] / "examples/jobkit"


async def run(example: str, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLES / example,
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
    printed = output.decode()
    assert process.returncode == 0, printed
    return printed


async def test_the_memory_example_runs_by_itself() -> None:
    printed = await run("memory.py")
    assert len(re.findall("^recurring: ", printed, re.MULTILINE)) >= 2
    assert re.search(r"^shaky: .*, attempt 2$", printed, re.MULTILINE)
    assert printed.endswith("done: at once removed, shaky kept\n")


async def test_the_sql_example_leaves_nothing_behind(empty_database: str) -> None:
    url = async_url(empty_database).render_as_string(hide_password=False)
    for _ in range(2):
        printed = await run("sql.py", url)
        assert len(re.findall("^stand up: ", printed, re.MULTILINE)) >= 3
        assert len(re.findall("^drink something: ", printed, re.MULTILINE)) == 1
        assert "business" not in printed
        assert printed.endswith("done\n")


async def test_the_sql_example_starts_a_server_when_it_gets_no_url() -> None:
    assert (await run("sql.py")).endswith("done\n")
