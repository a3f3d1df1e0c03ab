"""Faults of a fake network: rules, of which the first that fits a request and is not used up decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    # The connection is cut.
    RESET = "reset"
    # No answer ever comes.
    HANG = "hang"
    # `status`, `headers` and `body`, which may be any answer that the network has given to somebody.
    ANSWER = "answer"
    # 200 and a page of HTML.
    HTML = "html"
    # The proper status with an empty object: the name of what was made is missing.
    NAMELESS = "nameless"
    # 200 with an error of the network as its body.
    ERROR_IN_200 = "error_in_200"
    # A body that does not end.
    ENDLESS = "endless"
    # A small body that says it is a huge compressed one.
    GZIP_BOMB = "gzip_bomb"
    # 302 to `location`, or to nowhere.
    REDIRECT = "redirect"
    # The proper answer, after `seconds`.
    SLOW = "slow"
    # The network's own way to say "later"; `seconds` says how much later.
    RATE_LIMIT = "rate_limit"
    # The network's own way to refuse this content for good.
    REFUSAL = "refusal"


NEVER_WITH_EFFECT = frozenset({Fault.RATE_LIMIT, Fault.REFUSAL})
"""Faults that say that nothing was done."""


class BadRule(Exception):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    fault: Fault
    # The operation, as the network names it, or empty for any.
    operation: str = ""
    account: str = ""
    # True: the request is carried out, and then its answer is lost or replaced.
    effect: bool = False
    # So many requests that fit go by before the rule strikes.
    skip: int = 0
    # How often it strikes; 0: always.
    count: int = 1
    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict)
    # Text is sent as it is, anything else as JSON.
    body: Any = ""
    seconds: float = 0.0
    location: str = ""


class Faults:
    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def add(self, *rules: Rule) -> None:
        self._rules.extend(rules)

    def clear(self) -> None:
        self._rules.clear()

    def replace(self, entries: object) -> None:
        """Replaces all rules by those of a JSON list. Raises BadRule."""
        if not isinstance(entries, list):
            raise BadRule("send a JSON list of rules")
        self._rules = [_rule(number, entry) for number, entry in enumerate(entries)]

    def described(self) -> list[dict[str, object]]:
        """Returns the rules that are left, with the counts that remain."""
        return [{each.name: getattr(rule, each.name) for each in fields(Rule)} for rule in self._rules]

    def take(self, operation: str, account: str) -> Rule | None:
        """Returns the rule that strikes this request, and uses it up."""
        for index, rule in enumerate(self._rules):
            if rule.operation not in {"", operation} or rule.account not in {"", account}:
                continue
            if rule.skip:
                self._rules[index] = replace(rule, skip=rule.skip - 1)
                continue
            if rule.count == 1:
                del self._rules[index]
            elif rule.count:
                self._rules[index] = replace(rule, count=rule.count - 1)
            return rule
        return None


def _rule(number: int, entry: object) -> Rule:
    if not isinstance(entry, dict):
        raise BadRule(f"rule {number} is not an object")
    known = {each.name for each in fields(Rule)}
    if unknown := entry.keys() - known:
        raise BadRule(f"rule {number} has an unknown field {min(unknown)!r}; known are {', '.join(sorted(known))}")
    if entry.get("fault") not in list(Fault):
        raise BadRule(f"rule {number}: fault must be one of {', '.join(Fault)}")
    rule = Rule(**entry | {"fault": Fault(entry["fault"])})
    if rule.effect and rule.fault in NEVER_WITH_EFFECT:
        raise BadRule(f"rule {number}: {rule.fault} has no effect")
    return rule
