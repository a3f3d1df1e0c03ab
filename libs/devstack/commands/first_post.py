"""The first post, ready to be pasted into a shell."""

import json
import os
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

ORGANIZATION = "acme"
ACCOUNT = "acme-page"


def commands(targets: Mapping[str, str], grpcurl: str) -> str:
    """Returns lines that can be pasted any number of times: every paste is another draft, due ten seconds later."""
    account = {
        "organization_id": ORGANIZATION,
        "social_account_id": ACCOUNT,
        "provider": "sandbox",
        "external_account_id": "page-1",
        "credentials": {"access_token": "sandbox-token"},
    }
    draft = {
        "organization_id": ORGANIZATION,
        "draft_id": "$draft",
        "draft": {
            "content": {"text": "Hello from PostFlow"},
            "targets": [{"social_account_id": ACCOUNT, "channel": "facebook"}],
        },
    }
    named = {"organization_id": ORGANIZATION, "draft_id": "$draft"}
    publisher, drafts, queue = targets["publisher"], targets["drafts"], targets["queue"]
    calls = [
        _call(grpcurl, publisher, "postflow.publisher.v1.SocialAccountService/ConnectAccount", account),
        _call(grpcurl, drafts, "postflow.drafts.v1.DraftsService/CreateDraft", draft),
        _call(grpcurl, drafts, "postflow.drafts.v1.DraftsService/ApproveDraft", named),
        _call(grpcurl, queue, "postflow.queue.v1.QueueService/ScheduleAt", named | {"schedule_time": "$at"}),
        "sleep 11",
        _call(grpcurl, drafts, "postflow.drafts.v1.DraftsService/GetDraft", named),
    ]
    return "\n".join(["draft=hello-$(date +%s); at=$(date -u -d '+10 seconds' +%FT%TZ)", *calls])


def grpcurl_command() -> str:
    """Returns grpcurl as it has to be typed here."""
    installed = Path(sysconfig.get_path("scripts"), "grpcurl")
    if not installed.exists() or shutil.which("grpcurl"):
        return "grpcurl"
    return shortest(installed)


def shortest(program: Path) -> str:
    """Returns the path as it is typed in the current folder."""
    here = Path.cwd()
    return str(program.relative_to(here)) if program.is_relative_to(here) else os.fspath(program)


def _call(grpcurl: str, target: str, method: str, request: object) -> str:
    body = json.dumps(request)
    for variable in ("$draft", "$at"):
        body = body.replace(variable, f"'{variable}'")  # Outside the single quotes the shell expands it.
    return f"{grpcurl} -plaintext -d '{body}' {target} {method}"
