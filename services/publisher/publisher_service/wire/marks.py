"""Marks as they are kept in NATS."""

import json
from collections.abc import Mapping
from datetime import datetime

from publisher_service.domain.mark import Mark


def marks_from(value: bytes | None) -> dict[str, Mark]:
    if value is None:
        return {}
    return {
        process: Mark(process=process, number=int(number), time=datetime.fromisoformat(time))
        for process, (number, time) in json.loads(value).items()
    }


def marks_value(marks: Mapping[str, Mark]) -> bytes:
    shown = {process: (mark.number, mark.time.isoformat()) for process, mark in sorted(marks.items())}
    return json.dumps(shown).encode()
