"""Validates requests against the field rules in their protos (postflow/rules/v1/rules.proto), compiled once per type.

Undeclared rules hold for every request, so that no handler has to check them: valid instants and durations, known enum
values, finite numbers, texts without control characters, and update masks whose paths exist.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from postflow.rules.v1 import rules_pb2
from servicekit.faults import InvalidRequest, Violation

Validator = Callable[[Message], None]

# A problem is (path below the checked value, description); a path is empty or starts with "." or "[".
_Problems = Sequence[tuple[str, str]]
_Check = Callable[[Any], _Problems]

_FINE: _Problems = ()
_NO_RULES = rules_pb2.FieldRules()
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # all but tab and line ends
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NANOS = 1_000_000_000
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799  # 0001-01-01 to 9999-12-31, as protobuf defines them
_LONGEST_DURATION = 315_576_000_000
_MOST_PATHS = 200

_FLOATS = frozenset({FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE})
_NUMBERS = _FLOATS | {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}

_EMPTIABLE = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_ENUM})


class RuleError(Exception):
    """A rule does not fit the type of its field: a mistake in the proto, found when the server is built."""


def validator(request_type: Descriptor) -> Validator:
    """Returns a function that raises InvalidRequest with every violated field."""
    check = _Compiler().message(request_type)

    def validate(request: Message) -> None:
        if check and (problems := check(request)):
            raise _invalid([Violation(field=path.removeprefix("."), description=text) for path, text in problems])

    return validate


def _invalid(violations: list[Violation]) -> InvalidRequest:
    first, others = violations[0], len(violations) - 1
    return InvalidRequest(
        "INVALID_FIELD",
        f"{first.field}: {first.description}" + (f" (and {others} more)" if others else ""),
        metadata={"field": first.field},
        violations=tuple(violations),
    )


class _Compiler:
    """Turns descriptors into checks. A field without rules gets none, and costs nothing."""

    def __init__(self) -> None:
        self._done: dict[str, _Check | None] = {}

    def message(self, descriptor: Descriptor) -> _Check | None:
        name = descriptor.full_name
        if name in _WELL_KNOWN:
            return _WELL_KNOWN[name]
        if name not in self._done:
            self._done[name] = self._later(name)
            self._done[name] = self._compile(descriptor)
        return self._done[name]

    def _later(self, name: str) -> _Check:
        """Returns a check that stands in for a type while it is compiled, since a type may contain itself."""

        def check(message: Message) -> _Problems:
            return (self._done[name] or _pass)(message)

        return check

    def _compile(self, descriptor: Descriptor) -> _Check | None:
        checks = {
            field.number: ("." + field.name, check)
            for field in descriptor.fields
            if (check := self._field(field, descriptor))
        }
        demands = [
            ("." + field.name, _presence(field))
            for field in descriptor.fields
            if _rules(field).required and not _is_choice(field)
        ]
        return _message(checks, demands) if checks or demands else None

    def _field(self, field: FieldDescriptor, parent: Descriptor) -> _Check | None:
        rules = _rules(field)
        if _is_map(field):
            entry = _type_of(field).fields_by_name
            return _counted(rules, _entries(self._value(entry["key"]), self._value(entry["value"], rules)))
        if field.is_repeated:
            return _counted(rules, _elements(self._value(field, rules)))
        _refuse(field, rules, "min_items", "max_items")
        if _is(field, "google.protobuf.FieldMask"):
            return _mask(_resource(parent))
        says_something = rules.required and _is_choice(field) and field.type in _EMPTIABLE
        return _both(_not_empty if says_something else None, self._value(field, rules))

    def _value(self, field: FieldDescriptor, rules: rules_pb2.FieldRules = _NO_RULES) -> _Check | None:
        """Returns the check of one value: the field itself, or an element of it."""
        if field.type == FieldDescriptor.TYPE_STRING:
            _refuse(field, rules, "gte", "lte")
            return _text(rules)
        if field.type == FieldDescriptor.TYPE_BYTES:
            _refuse(field, rules, "id", "pattern", "gte", "lte")
            return _length(rules, "bytes")
        _refuse(field, rules, "id", "pattern", "min_len", "max_len")
        if field.cpp_type in _NUMBERS:
            return _both(_finite if field.cpp_type in _FLOATS else None, _bounds(rules, "", _itself, 1))
        if _is(field, "google.protobuf.Duration"):
            return _both(_duration, _bounds(rules, " seconds", _total_nanos, _NANOS))
        _refuse(field, rules, "gte", "lte")
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            return self.message(_type_of(field))
        return _known(field.enum_type, is_choice=field.is_repeated) if field.enum_type else None


def _message(
    checks: Mapping[int, tuple[str, _Check]], demands: Sequence[tuple[str, Callable[[Message], bool]]]
) -> _Check:
    def check(message: Message) -> _Problems:
        problems: list[tuple[str, str]] = []
        for field, value in message.ListFields():
            if (named := checks.get(field.number)) and (found := named[1](value)):
                problems += [(named[0] + path, text) for path, text in found]
        problems += [(path, "is required") for path, is_present in demands if not is_present(message)]
        return problems

    return check


def _both(first: _Check | None, second: _Check | None) -> _Check | None:
    if first is None or second is None:
        return first or second
    return lambda value: [*first(value), *second(value)]


def _counted(rules: rules_pb2.FieldRules, check_each: _Check | None) -> _Check | None:
    """Limits the number of elements. Too many are not checked one by one: 100,000 would delay every other call."""
    if not (rules.HasField("min_items") or rules.HasField("max_items")):
        return check_each
    least = rules.min_items if rules.HasField("min_items") else -math.inf
    most = rules.max_items if rules.HasField("max_items") else math.inf

    def check(values: Any) -> _Problems:
        count = len(values)
        found = _FINE if least <= count <= most else [("", f"must have {_range(least, most)} elements")]
        return found if count > most or check_each is None else [*found, *check_each(values)]

    return check


def _elements(check: _Check | None) -> _Check | None:
    if check is None:
        return None

    def check_each(values: Any) -> _Problems:
        return [(f"[{index}]{path}", text) for index, value in enumerate(values) for path, text in check(value)]

    return check_each


def _entries(check_key: _Check | None, check_value: _Check | None) -> _Check | None:
    def check_each(entries: Any) -> _Problems:
        problems: list[tuple[str, str]] = []
        for key, value in entries.items():
            problems += [(f"[{json.dumps(key)}]", f"key {text}") for _, text in (check_key or _pass)(key)]
            problems += [(f"[{json.dumps(key)}]{path}", text) for path, text in (check_value or _pass)(value)]
        return problems

    return check_each if check_key or check_value else None


def _text(rules: rules_pb2.FieldRules) -> _Check:
    if rules.id:
        return _matches(_ID, "must be 1 to 64 characters of A-Z a-z 0-9 _ -")
    pattern = _matches(re.compile(rules.pattern), f"must match {rules.pattern}") if rules.pattern else None
    return _both(_both(_printable, _length(rules, "characters")), pattern) or _printable


def _matches(pattern: re.Pattern[str], text: str) -> _Check:
    return lambda value: _FINE if pattern.fullmatch(value) else [("", text)]


def _printable(value: str) -> _Problems:
    """Refuses control characters: PostgreSQL stores no NUL, and providers, logs and terminals may obey the others."""
    # Lone surrogates never get here: they are no valid UTF-8 and do not decode.
    return _FINE if _CONTROL.search(value) is None else [("", "must not contain control characters")]


def _length(rules: rules_pb2.FieldRules, unit: str) -> _Check | None:
    if not (rules.HasField("min_len") or rules.HasField("max_len")):
        return None
    least = rules.min_len if rules.HasField("min_len") else -math.inf
    most = rules.max_len if rules.HasField("max_len") else math.inf

    def check(value: str | bytes) -> _Problems:
        return _FINE if least <= len(value) <= most else [("", f"must have {_range(least, most)} {unit}")]

    return check


def _bounds(rules: rules_pb2.FieldRules, unit: str, measure: Callable[[Any], float], scale: int) -> _Check | None:
    if not (rules.HasField("gte") or rules.HasField("lte")):
        return None
    least = rules.gte if rules.HasField("gte") else -math.inf
    most = rules.lte if rules.HasField("lte") else math.inf

    def check(value: Any) -> _Problems:
        inside = least * scale <= measure(value) <= most * scale
        return _FINE if inside else [("", f"must be {_range(least, most)}{unit}")]

    return check


def _range(least: float, most: float) -> str:
    if most == math.inf:
        return f"at least {least}"
    return f"at most {most}" if least == -math.inf else f"{least} to {most}"


def _known(enum: EnumDescriptor, *, is_choice: bool) -> _Check:
    """Accepts the values of the enum, in a list without 0, which would pass for a choice."""
    known = frozenset(enum.values_by_number) - (frozenset({0}) if is_choice else frozenset())
    return lambda value: _FINE if value in known else [("", f"{value} is not a value of {enum.name}")]


def _mask(resource: Descriptor) -> _Check:
    def check(mask: Any) -> _Problems:
        if len(mask.paths) > _MOST_PATHS:
            return [("", f"must have at most {_MOST_PATHS} paths")]
        return [
            ("", f"{path!r} is not a field of {resource.name}") for path in mask.paths if not _exists(resource, path)
        ]

    return check


def _exists(descriptor: Descriptor | None, path: str) -> bool:
    for name in path.split("."):
        field = descriptor.fields_by_name.get(name) if descriptor else None
        if field is None:
            return False
        # An element of a list or map, or a part of an instant, cannot be changed alone.
        is_open = field.message_type and not field.is_repeated and not _is_well_known(field.message_type)
        descriptor = field.message_type if is_open else None
    return True


def _resource(request_type: Descriptor) -> Descriptor:
    found = [
        field.message_type
        for field in request_type.fields
        if field.message_type and not field.is_repeated and not _is_well_known(field.message_type)
    ]
    if len(found) != 1:
        raise RuleError(f"{request_type.full_name}: an update mask needs exactly one message beside it")
    return found[0]


def _type_of(field: FieldDescriptor) -> Descriptor:
    assert field.message_type, f"{field.full_name} is no message"
    return field.message_type


def _is(field: FieldDescriptor, name: str) -> bool:
    return field.message_type is not None and field.message_type.full_name == name


def _is_well_known(descriptor: Descriptor) -> bool:
    return descriptor.full_name.startswith("google.protobuf.")


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _is_choice(field: FieldDescriptor) -> bool:
    """Returns whether the field is a member of a declared oneof; `optional` creates an implicit one."""
    return field.containing_oneof is not None and field.containing_oneof.name != f"_{field.name}"


def _presence(field: FieldDescriptor) -> Callable[[Message], bool]:
    name = field.name
    if not field.has_presence:
        return lambda message: bool(getattr(message, name))
    if field.type in _EMPTIABLE:
        return lambda message: message.HasField(name) and bool(getattr(message, name))
    return lambda message: message.HasField(name)


def _rules(field: FieldDescriptor) -> rules_pb2.FieldRules:
    rules: rules_pb2.FieldRules = field.GetOptions().Extensions[rules_pb2.rules]  # type: ignore[index]
    return rules


def _refuse(field: FieldDescriptor, rules: rules_pb2.FieldRules, *names: str) -> None:
    for rule, _ in rules.ListFields():
        if rule.name in names:
            raise RuleError(f"{field.full_name}: the rule {rule.name} does not fit its type")


def _timestamp(value: Any) -> _Problems:
    if _FIRST_SECOND <= value.seconds <= _LAST_SECOND and 0 <= value.nanos < _NANOS:
        return _FINE
    return [("", "must be an instant of the years 1 to 9999")]


def _duration(value: Any) -> _Problems:
    seconds, nanos = value.seconds, value.nanos
    if abs(seconds) <= _LONGEST_DURATION and abs(nanos) < _NANOS and seconds * nanos >= 0:
        return _FINE
    return [("", "is not a valid duration")]


def _total_nanos(value: Any) -> int:
    return int(value.seconds) * _NANOS + int(value.nanos)


def _itself(value: Any) -> Any:
    return value


def _finite(value: float) -> _Problems:
    return _FINE if math.isfinite(value) else [("", "must be a finite number")]


def _not_empty(value: Any) -> _Problems:
    """Refuses an empty value of a required member of a oneof."""
    return _FINE if value else [("", "must not be empty")]


def _pass(_value: Any) -> _Problems:
    return _FINE


_WELL_KNOWN: Mapping[str, _Check | None] = {
    "google.protobuf.Any": None,
    "google.protobuf.Duration": _duration,
    "google.protobuf.Timestamp": _timestamp,
}
