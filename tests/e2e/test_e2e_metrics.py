"""Metrics that a runbook names for alarms exist before the first occurrence of what they count."""

import asyncio
import re
import urllib.request
from pathlib import Path

import pytest

from devstack.layout import SERVICES
from devstack.stack import Stack
from testkit.eventually import eventually

ROOT = Path(__file__).parents[2]
OF_EVERY_PROCESS = ROOT / "libs" / "servicekit" / "README.md"
# A histogram has no series before its first value.
HISTOGRAMS = {
    "postflow_publish_lateness_seconds",
    "postflow_publish_provider_latency_seconds",
    "postflow_queue_claim_size",
    "postflow_queue_dispatch_lateness_seconds",
    "postflow_timer_lateness_seconds",
}
# Their labels come from events.
UNFORESEEN = {"postflow_events_ignored_total", "postflow_drafts_post_job_events_total"}


@pytest.mark.parametrize("service", SERVICES)
async def test_each_metric_of_a_runbook_exists_from_the_start(stack: Stack, service: str) -> None:
    named = _named(ROOT / "services" / service / "README.md") | _named(OF_EVERY_PROCESS)

    async def all_shown() -> bool:
        assert named - HISTOGRAMS - UNFORESEEN - await asyncio.to_thread(_shown, stack.metrics[service]) == set()
        return True

    await eventually(all_shown, within=5)


def _named(document: Path) -> set[str]:
    return set(re.findall(r"postflow_[a-z_]+[a-z]", document.read_text()))


def _shown(address: str) -> set[str]:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return set(re.findall(r"^(postflow_[a-z_]+)[ {]", answer.read().decode(), re.MULTILINE))
