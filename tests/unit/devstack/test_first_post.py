import json
import shlex
import subprocess

from devstack.commands.first_post import commands
from devstack.layout import WELL_KNOWN_PORTS, Layout


def test_the_commands_are_shell_that_sends_valid_json() -> None:
    """`printf` in place of grpcurl shows what the shell passes on."""
    script = commands(Layout(WELL_KNOWN_PORTS, {}).targets, "printf '%s\\n'").replace("sleep 11", ":")
    done = subprocess.run(["/bin/sh", "-euc", script], capture_output=True, text=True, check=True)
    calls = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(calls) == 5
    drafts = {call["draft_id"] for call in calls if "draft_id" in call}
    assert len(drafts) == 1
    assert drafts.pop().startswith("hello-")
    assert [call["schedule_time"][-1] for call in calls if "schedule_time" in call] == ["Z"]


def test_every_command_fits_a_line_and_names_its_service() -> None:
    lines = commands(Layout(WELL_KNOWN_PORTS, {}).targets, "grpcurl").splitlines()
    calls = [shlex.split(line) for line in lines if line.startswith("grpcurl")]
    assert [(call[-2], call[-1].split("/")[1]) for call in calls] == [
        ("127.0.0.1:50054", "ConnectAccount"),
        ("127.0.0.1:50053", "CreateDraft"),
        ("127.0.0.1:50053", "ApproveDraft"),
        ("127.0.0.1:50052", "ScheduleAt"),
        ("127.0.0.1:50053", "GetDraft"),
    ]
