"""Grants as they are kept, sealed, until an account of them is chosen."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from publisher_service.domain.connecting import Candidate, Grant
from publisher_service.domain.credentials import Credentials

_SECRETS = ("access_token", "refresh_token", "user_token")


def grant_text(grant: Grant, *, now: datetime) -> str:
    """Encodes a grant, with the instants at which it ends."""
    candidates = [
        {
            "id": each.external_account_id,
            "name": each.name,
            "channels": each.channels,
            "credentials": {name: getattr(each.credentials, name) for name in _SECRETS},
            "expire_time": _end(now, each.expires_in),
            "refresh_expire_time": _end(now, each.refresh_expires_in),
        }
        for each in grant.candidates
    ]
    return json.dumps({"candidates": candidates, "scopes": grant.scopes})


def grant_from(text: str, *, now: datetime) -> Grant:
    """Decodes a grant; what is left of its life counts from `now`."""
    facts = json.loads(text)
    return Grant(candidates=[_candidate(each, now) for each in facts["candidates"]], scopes=tuple(facts["scopes"]))


def _candidate(facts: Mapping[str, Any], now: datetime) -> Candidate:
    return Candidate(
        external_account_id=facts["id"],
        name=facts["name"],
        channels=tuple(facts["channels"]),
        credentials=Credentials(**facts["credentials"]),
        expires_in=_left(now, facts["expire_time"]),
        refresh_expires_in=_left(now, facts["refresh_expire_time"]),
    )


def _end(now: datetime, duration: timedelta | None) -> str | None:
    return None if duration is None else (now + duration).isoformat()


def _left(now: datetime, end: str | None) -> timedelta | None:
    return None if end is None else datetime.fromisoformat(end) - now
