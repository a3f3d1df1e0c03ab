"""The page about posts as a newcomer reads it: every line runs from top to bottom, and every call has one."""

import asyncio
import json
import re
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devstack.layout import WELL_KNOWN_PORTS
from devstack.stack import Stack
from postflow.publisher.v1 import publisher_admin_service_pb2, publisher_service_pb2, social_account_service_pb2
from publisher_service.adapters.postgres.explanations import TRACE
from publisher_service.domain.explanation import Beside

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/publisher.md").read_text()
SCRIPT = "\n".join(re.findall(r"```sh\n(.+?)```", PAGE, re.DOTALL))
CALLS = [
    *publisher_service_pb2.DESCRIPTOR.services_by_name["PublisherService"].methods_by_name,
    *social_account_service_pb2.DESCRIPTOR.services_by_name["SocialAccountService"].methods_by_name,
    *publisher_admin_service_pb2.DESCRIPTOR.services_by_name["PublisherAdminService"].methods_by_name,
]


def _at(stack: Stack) -> str:
    """Returns the lines of the page, with the addresses of the stack."""
    script = SCRIPT.replace(".venv/bin/", f"{sysconfig.get_path('scripts')}/")
    for service, port in WELL_KNOWN_PORTS.services.items():
        script = re.sub(rf"(?:127\.0\.0\.1:)?{port}", stack.targets[service], script)
    return script.replace("127.0.0.1:$1", "$1").replace("http://127.0.0.1:50060", stack.sandbox.url)


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
    assert [line for line in done.stdout.splitlines() if line.startswith("A hold covers account shop: a wrong price")]
    outcomes = Counter(result["outcome"] for answer in answers for result in answer.get("results", ()))
    assert outcomes == {"PUBLISH_NOW_OUTCOME_STARTED": 1, "CANCEL_OUTCOME_CANCELED": 1}
    assert [answer["outcome"] for answer in answers if "outcome" in answer] == ["WITHDRAW_OUTCOME_WITHDRAWN"]
    connected = {
        answer["socialAccount"]["id"]: answer["socialAccount"] for answer in answers if "socialAccount" in answer
    }
    assert connected["cafe"]["credentialsInfo"]["generation"] == "2"
    states = {answer["postJob"]["draftId"]: answer["postJob"]["state"] for answer in answers if "postJob" in answer}
    assert states == {
        "p1": "POST_JOB_STATE_SCHEDULED",
        "p4": "POST_JOB_STATE_READY",
        "p5": "POST_JOB_STATE_PUBLISHED",
    }


def test_every_call_of_publisher_is_on_the_page() -> None:
    assert [call for call in CALLS if not re.search(rf"\b{call}(?=[ ']|$)", SCRIPT, re.MULTILINE)] == []


def test_every_verdict_is_on_the_page() -> None:
    verdicts = {check.verdict for check in TRACE} | set(Beside)
    shown = set(re.findall(r"`([A-Z_]+)`", PAGE.split("| verdict |")[1]))
    # Queue sends no old command for a post that has moved on, and a claim looks again once it knows the limits.
    assert verdicts - shown == {"STALE", "LIMITS_STALE"}
