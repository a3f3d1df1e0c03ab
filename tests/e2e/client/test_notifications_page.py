"""The page about notifications as a newcomer reads it: every line runs from top to bottom, and every call has one."""

import asyncio
import re
import subprocess
import sysconfig
from pathlib import Path

from devstack.stack import Stack
from postflow.publisher.v1 import notification_service_pb2
from publisher_service.domain.notification import CHOSEN
from publisher_service.wire.webhook_payloads import TYPES
from testkit.eventually import eventually

PAGE = (Path(__file__).parents[3] / "docs/notifications.md").read_text()
SCRIPT = "\n".join(re.findall(r"```sh\n(.+?)```", PAGE, re.DOTALL))
CALLS = [*notification_service_pb2.DESCRIPTOR.services_by_name["NotificationService"].methods_by_name]


def _shell(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-ec", script], capture_output=True, text=True, check=False, timeout=120)


async def test_every_line_of_the_page_runs_and_the_test_is_mailed(stack: Stack) -> None:
    script = SCRIPT.replace(".venv/bin/", f"{sysconfig.get_path('scripts')}/")
    script = script.replace("127.0.0.1:50054", stack.targets["publisher"])
    done = await asyncio.to_thread(_shell, script)
    assert done.returncode == 0, done.stderr
    secrets = [line for line in done.stdout.splitlines() if line.startswith("whsec_")]
    assert len(secrets) == 2
    assert done.stdout.count("whsec_") == 2

    def mailed() -> list[str]:
        return [file.read_text() for file in stack.mails.glob("*.eml")]

    await eventually(lambda: [mail for mail in mailed() if "To: Ann <ann@example.com>" in mail])


def test_every_call_and_every_kind_is_on_the_page() -> None:
    assert [call for call in CALLS if not re.search(rf"\bcall {call} ", SCRIPT)] == []
    assert [kind for kind in CHOSEN if f"| `{kind}` | `{TYPES[kind]}` |" not in PAGE] == []
