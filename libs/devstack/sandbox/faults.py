"""Faults of the sandbox provider: a list of rules, of which the first that fits and is not used up decides."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum


class Fault(StrEnum):
    RESET_BEFORE_EFFECT = "reset_before_effect"
    EFFECT_THEN_RESET = "effect_then_reset"
    HANG_WITHOUT_EFFECT = "hang_without_effect"
    EFFECT_THEN_HANG = "effect_then_hang"
    STATUS = "status"
    SLOW = "slow"
    GARBAGE = "garbage"
    LATE_EFFECT = "late_effect"
    MEDIA = "media"
    FLOOD = "flood"
    DUPLICATE = "duplicate"


class Operation(StrEnum):
    POST = "post"
    LOOKUP = "lookup"
    ACCOUNT = "account"
    CONTAINER = "container"
    STATUS = "status"
    AUTHORIZE = "authorize"
    TOKEN = "token"


class Answer(StrEnum):
    HANG = "hang"
    RESET = "reset"
    STATUS = "status"
    GARBAGE = "garbage"


WITHOUT_EFFECT = frozenset(
    {Fault.RESET_BEFORE_EFFECT, Fault.HANG_WITHOUT_EFFECT, Fault.STATUS, Fault.SLOW, Fault.GARBAGE}
)
"""Faults that any operation can suffer."""
ALSO_OF = {
    Operation.CONTAINER: frozenset({Fault.MEDIA, Fault.FLOOD}),
    Operation.POST: frozenset(Fault) - {Fault.MEDIA},
    Operation.TOKEN: frozenset({Fault.EFFECT_THEN_RESET, Fault.EFFECT_THEN_HANG}),
}
"""Faults that some operations can suffer besides those."""


class BadRule(Exception):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    fault: Fault
    operation: Operation = Operation.POST
    account: str = ""
    """Empty: every account."""
    text: str = ""
    """Part of the text (POST only)."""
    count: int = 0
    """Number of times that the rule strikes; 0: always."""
    status: int = 503
    """HTTP status of the answer."""
    retry_after: int = 0
    """Seconds, sent as Retry-After with a status; 0: no such header."""
    effect: bool = False
    """True: `status` and `garbage` publish the post nevertheless."""
    seconds: float = 0.0
    """Delay of `slow` and `late_effect`; length of a `flood`; processing time of `media`."""
    body: str = "<html>It works!</html>"
    """Body of a garbage answer, whose status is 200."""
    answer: Answer = Answer.HANG
    """Answer that the client of a `late_effect` gets at once."""
    error: str = ""
    """Words with which the processing of `media` fails; empty: it succeeds."""
    life: float = 86_400.0
    """Seconds until a container of `media` expires."""
    ghost: bool = False
    """True: a `duplicate` names a post that cannot be found."""


class Faults:
    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def replace(self, rules: object) -> None:
        if not isinstance(rules, list):
            raise BadRule("send a JSON list of rules")
        self._rules = [_rule(number, entry) for number, entry in enumerate(rules)]

    def clear(self) -> None:
        self._rules = []

    def described(self) -> list[dict[str, object]]:
        """Returns the rules that are left, with the counts that remain."""
        return [{field.name: getattr(rule, field.name) for field in fields(Rule)} for rule in self._rules]

    def take(self, operation: Operation, account: str, text: str = "") -> Rule | None:
        for index, rule in enumerate(self._rules):
            if rule.operation is operation and rule.account in {"", account} and rule.text in text:
                self._use(index, rule)
                return rule
        return None

    def _use(self, index: int, rule: Rule) -> None:
        if rule.count == 1:
            del self._rules[index]
        elif rule.count:
            self._rules[index] = replace(rule, count=rule.count - 1)


def _rule(number: int, entry: object) -> Rule:
    if not isinstance(entry, Mapping):
        raise BadRule(f"rule {number} is not an object")
    kinds = {field.name: field.type for field in fields(Rule)}
    values: dict[str, object] = {}
    for name, value in entry.items():
        if name not in kinds:
            raise BadRule(f"rule {number} has an unknown field {name!r}; known are {', '.join(kinds)}")
        values[name] = _value(number, name, value, kinds[name])
    if "fault" not in values:
        raise BadRule(f"rule {number} names no fault; known are {', '.join(Fault)}")
    rule = Rule(**values)  # type: ignore[arg-type]
    if rule.fault not in WITHOUT_EFFECT | ALSO_OF.get(rule.operation, frozenset()):
        raise BadRule(f"rule {number}: {rule.fault} makes no sense for {rule.operation}")
    if not 400 <= rule.status <= 599:
        raise BadRule(f"rule {number}: status must lie in 400-599")
    return rule


def _value(number: int, name: str, value: object, kind: object) -> object:
    assert isinstance(kind, type)
    if issubclass(kind, StrEnum):
        if value not in list(kind):
            raise BadRule(f"rule {number}: {name} must be one of {', '.join(kind)}")
        return kind(str(value))
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise BadRule(f"rule {number}: {name} must be of type {kind.__name__}")
    if isinstance(value, int | float) and value < 0:
        raise BadRule(f"rule {number}: {name} must not be negative")
    return value
