"""Follow-ups of a run: each is out only behind the part before, and follows what it should; none is forgotten."""

from collections.abc import Iterator, Mapping
from typing import Any

from testkit.stack.history import History, effects_by_job, target_of


def out_of_order(history: History) -> Iterator[str]:
    """Finds follow-ups that went out before the part that they follow, below another post, or were never begun."""
    effects = effects_by_job(history)
    parts = {(target_of(job), job.get("part", 0)): job for job in history.jobs}
    for (target, part), job in parts.items():
        if not part:
            continue
        before = parts[target, part - 1]
        earlier = effects.get(before["id"], ())
        for effect in effects.get(job["id"], ()):
            if not any(each["seq"] < effect["seq"] for each in earlier):
                yield f"part {part} of {target} is out as {effect['id']}, and the one before is not"
            elif not _follows(effect, target, part, parts):
                yield f"part {part} of {target} follows {effect.get('follows')!r}"
        if before["state"] == "PUBLISHED" and job["state"] == "PENDING":
            yield f"part {part} of {target} is not begun, and the one before is out"


def _follows(
    effect: Mapping[str, Any], target: tuple[str, ...], part: int, parts: Mapping[tuple[Any, int], Mapping[str, Any]]
) -> bool:
    """Returns whether a comment stands below its post, or a part of a thread behind the one before."""
    return effect.get("follows") in {parts[target, 0]["external_id"], parts[target, part - 1]["external_id"]}
