"""The page about queues as a newcomer reads it: every line runs from top to bottom, and every call has one."""

import asyncio
import json
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devstack.layout import WELL_KNOWN_PORTS
from devstack.stack import Stack
from postflow.queue.v1 import queue_admin_service_pb2, queue_service_pb2

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/queue.md").read_text()
SCRIPT = "\n".join(re.findall(r"```sh\n(.+?)```", PAGE, re.DOTALL))
CALLS = [
    *queue_service_pb2.DESCRIPTOR.services_by_name["QueueService"].methods_by_name,
    *queue_admin_service_pb2.DESCRIPTOR.services_by_name["QueueAdminService"].methods_by_name,
]


def _at(stack: Stack) -> str:
    """Returns the lines of the page, with the addresses of the stack."""
    script = SCRIPT.replace(".venv/bin/", f"{sysconfig.get_path('scripts')}/")
    for service, port in WELL_KNOWN_PORTS.services.items():
        script = re.sub(rf"(?:127\.0\.0\.1:)?{port}", stack.targets[service], script)
    return script.replace("127.0.0.1:$1", "$1")


def _shell(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-ec", script], capture_output=True, text=True, check=False, timeout=240)


def _answers(text: str) -> Iterator[dict[str, Any]]:
    for block in re.findall(r"^\{$.*?^\}$", text, re.DOTALL | re.MULTILINE):
        yield json.loads(block)


async def test_every_line_of_the_page_runs(stack: Stack) -> None:
    done = await asyncio.to_thread(_shell, _at(stack))
    assert done.returncode == 0, done.stderr
    answers = list(_answers(done.stdout))
    assert any(answer.get("isCaughtUp") for answer in answers)
    assert "\nDraft q3 is to go out on account store at " in done.stdout
    drafts = [answer["draft"] for answer in answers if "draft" in answer]
    assert [draft["id"] for draft in drafts if draft["state"] == "DRAFT_STATE_SCHEDULED"] == ["q6"]
    # All but q3, which was removed before.
    assert [answer["canceledSlots"] for answer in answers if "canceledSlots" in answer] == [5]


def test_every_call_to_a_queue_is_on_the_page() -> None:
    assert [call for call in CALLS if not re.search(rf"\b{call} ", SCRIPT)] == []
