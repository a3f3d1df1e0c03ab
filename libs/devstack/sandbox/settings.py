"""Settings of accounts of the sandbox provider, beside the rules of faults; forgotten at its end."""

from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from devstack.sandbox.checks import Refusal
from devstack.sandbox.posts import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    mode: Mode = Mode.KEYED
    visibility_lag: float = 0.0
    """Seconds after which a new post is listed."""
    refuse_duplicates: bool = False
    """True: a post of a text that the account has posted before is refused (`updates` only)."""
    media_seconds: float = 0.0
    """Time for which a container is processed."""
    container_life: float = 86_400.0
    """Seconds until a container expires."""


class Accounts:
    def __init__(self) -> None:
        self._facts: dict[str, Facts] = {}
        self._floods: dict[str, datetime] = {}

    def of(self, account: str) -> Facts:
        return self._facts.get(account, _DEFAULT)

    def put(self, account: str, facts: object) -> dict[str, object]:
        """Changes the facts that are named. Returns what was named; raises ValueError."""
        if not isinstance(facts, dict) or not facts:
            raise ValueError(f"name one or more of {', '.join(_KINDS)}")
        values: dict[str, object] = {}
        for name, value in facts.items():
            if name not in _KINDS:
                raise ValueError(f"unknown field {name!r}; known are {', '.join(_KINDS)}")
            values[name] = Mode(value) if name == "mode" else _KINDS[name](value)
        self._facts[account] = replace(self.of(account), **values)  # type: ignore[arg-type]
        return {"id": account} | values

    def flood(self, account: str, *, seconds: float, now: datetime) -> None:
        """Lets the account wait: until then all its posts are refused."""
        self._floods[account] = now + timedelta(seconds=seconds)

    def check_flood(self, account: str, now: datetime) -> None:
        """Raises Refusal while the account has to wait."""
        until = self._floods.get(account)
        if until is not None and until > now:
            left = -(-(until - now) // timedelta(seconds=1))
            raise Refusal(420, "FLOOD_WAIT", f"wait for {left} s", seconds=left)


_DEFAULT = Facts()
_KINDS = {field.name: field.type for field in fields(Facts) if isinstance(field.type, type)}
