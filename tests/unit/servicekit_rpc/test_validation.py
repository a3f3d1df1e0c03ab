"""Every rule of rules.proto on every kind of field it fits, and the checks without a rule."""

import math
import re
from typing import Any

import pytest
from google.protobuf import duration_pb2, field_mask_pb2, struct_pb2, timestamp_pb2
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from postflow.rules.v1 import rules_pb2
from servicekit.faults import InvalidRequest, Violation
from servicekit.rpc.validation import RuleError, validator
from testkit.protos import compile_proto

IMPORTED = (duration_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, rules_pb2)
HEAD = """
    syntax = "proto3";
    package checked.v1;
    import "google/protobuf/duration.proto";
    import "google/protobuf/field_mask.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/timestamp.proto";
    import "postflow/rules/v1/rules.proto";
"""
MESSAGES = compile_proto(
    "checked.proto",
    HEAD
    + """
    message Everything {
      string id = 1 [(postflow.rules.v1.rules) = {required: true id: true}];
      string text = 2 [(postflow.rules.v1.rules) = {min_len: 2 max_len: 5 pattern: "[a-zü]*"}];
      optional string note = 3 [(postflow.rules.v1.rules) = {min_len: 1}];
      bytes raw = 4 [(postflow.rules.v1.rules) = {max_len: 3}];
      int32 hour = 5 [(postflow.rules.v1.rules) = {gte: 0 lte: 23}];
      optional int64 least = 6 [(postflow.rules.v1.rules) = {gte: 1}];
      double share = 7 [(postflow.rules.v1.rules) = {lte: 1}];
      Kind kind = 8 [(postflow.rules.v1.rules) = {required: true}];
      Part part = 9 [(postflow.rules.v1.rules) = {required: true}];
      repeated Part parts = 10 [(postflow.rules.v1.rules) = {max_items: 2}];
      repeated string tags = 11 [(postflow.rules.v1.rules) = {required: true min_items: 2 max_items: 3 id: true}];
      map<string, Part> by_name = 12 [(postflow.rules.v1.rules) = {max_items: 2}];
      map<string, string> labels = 13 [(postflow.rules.v1.rules) = {max_len: 3}];
      google.protobuf.Timestamp at = 14;
      google.protobuf.Duration lasts = 15 [(postflow.rules.v1.rules) = {gte: 1 lte: 60}];
      oneof choice {
        string named = 16 [(postflow.rules.v1.rules) = {required: true max_len: 3}];
        Part chosen = 17;
      }
      google.protobuf.Struct any_json = 18;
      repeated Kind kinds = 19;
      Everything again = 20;
    }
    enum Kind { KIND_UNSPECIFIED = 0; KIND_ONE = 1; KIND_FIVE = 5; }
    message Part { string name = 1 [(postflow.rules.v1.rules) = {required: true}]; }
    message Free { int32 number = 1; Kind kind = 2; bool flag = 3; }
    message UpdateRequest {
      Everything everything = 1;
      google.protobuf.FieldMask update_mask = 2;
    }
    """,
)
Everything: Any = MESSAGES["Everything"]
Part: Any = MESSAGES["Part"]
UpdateRequest: Any = MESSAGES["UpdateRequest"]
validate = validator(Everything.DESCRIPTOR)
validate_update = validator(UpdateRequest.DESCRIPTOR)


def valid(**fields: Any) -> Any:
    return Everything(**({"id": "a-Z_9", "kind": 1, "part": Part(name="p"), "tags": ["a", "b"]} | fields))


def violations(request: Any, check: Any = validate) -> list[Violation]:
    with pytest.raises(InvalidRequest) as caught:
        check(request)
    assert caught.value.reason == "INVALID_FIELD"
    return list(caught.value.violations)


def fields(request: Any, check: Any = validate) -> list[str]:
    return [violation.field for violation in violations(request, check)]


def moment(seconds: int, nanos: int = 0) -> timestamp_pb2.Timestamp:
    return timestamp_pb2.Timestamp(seconds=seconds, nanos=nanos)


def span(seconds: int, nanos: int = 0) -> duration_pb2.Duration:
    return duration_pb2.Duration(seconds=seconds, nanos=nanos)


@pytest.mark.parametrize(
    "request_",
    [
        valid(),
        valid(text="ab"),
        valid(text="üüüüü"),
        valid(note="x"),
        valid(note="tab\tand\r\nlines, \u202eeverything\u200b 👍🏽"),
        valid(raw=b"123"),
        valid(hour=23),
        valid(least=1),
        valid(share=-7.5),
        valid(kind=5),
        valid(parts=[Part(name="a"), Part(name="b")]),
        valid(by_name={"x": Part(name="a")}, labels={"k": "abc"}),
        valid(at=moment(-62135596800), lasts=span(60)),
        valid(at=moment(253402300799, 999_999_999), lasts=span(1)),
        valid(named="abc"),
        valid(chosen=Part(name="c")),
        valid(any_json={"a": [1, {"b": "c"}, None]}),
        valid(again=valid(again=valid())),
    ],
    ids=str,
)
def test_a_request_that_keeps_every_rule_is_accepted(request_: Any) -> None:
    validate(request_)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": "x" * 65}, "id"),
        ({"id": "a\n"}, "id"),
        ({"id": "é"}, "id"),
        ({"text": "a"}, "text"),
        ({"text": "abcdef"}, "text"),
        ({"text": "ab\n"}, "text"),
        ({"note": ""}, "note"),
        ({"raw": b"1234"}, "raw"),
        ({"hour": -1}, "hour"),
        ({"hour": 24}, "hour"),
        ({"least": 0}, "least"),
        ({"share": 1.5}, "share"),
        ({"share": -math.inf}, "share"),
        ({"kind": 0}, "kind"),
        ({"kind": 2}, "kind"),
        ({"part": None}, "part"),
        ({"part": Part()}, "part.name"),
        ({"parts": [Part(name="a"), Part()]}, "parts[1].name"),
        ({"parts": [Part(name="a")] * 3}, "parts"),
        ({"tags": ["a"]}, "tags"),
        ({"tags": []}, "tags"),
        ({"tags": ["a", "b", "c", "d"]}, "tags"),
        ({"tags": ["a", ""]}, "tags[1]"),
        ({"by_name": {'a"b': Part()}}, r'by_name["a\"b"].name'),
        ({"by_name": {"a\0": Part(name="x")}}, r'by_name["a\u0000"]'),
        ({"labels": {"k": "abcd"}}, 'labels["k"]'),
        ({"at": moment(-62135596801)}, "at"),
        ({"at": moment(253402300800)}, "at"),
        ({"at": moment(0, -1)}, "at"),
        ({"at": moment(0, 1_000_000_000)}, "at"),
        ({"lasts": span(60, 1)}, "lasts"),
        ({"lasts": span(0, 999_999_999)}, "lasts"),
        ({"named": ""}, "named"),
        ({"named": "abcd"}, "named"),
        ({"chosen": Part()}, "chosen.name"),
        (
            {"any_json": {"a": [{"b": "nul\0"}]}},
            'any_json.fields["a"].list_value.values[0].struct_value.fields["b"].string_value',
        ),
        ({"kinds": [1, 7]}, "kinds[1]"),
        ({"kinds": [1, 0]}, "kinds[1]"),
        ({"note": "bell \a"}, "note"),
        ({"note": "escape \x1b[2J"}, "note"),
        ({"note": "c1 \x9b2J"}, "note"),
        ({"note": "del \x7f"}, "note"),
        ({"again": valid(again=valid(hour=99))}, "again.again.hour"),
    ],
    ids=str,
)
def test_a_field_that_breaks_a_rule_is_named(changed: dict[str, Any], field: str) -> None:
    assert set(fields(valid(**changed))) == {field}


@pytest.mark.parametrize("lasts", [span(1, -1), span(-1, 1), span(2, 1_000_000_000), span(315_576_000_001)], ids=str)
def test_an_invalid_duration_is_refused_with_any_bounds(lasts: Any) -> None:
    assert "is not a valid duration" in [one.description for one in violations(valid(lasts=lasts))]


def test_a_bound_holds_only_for_a_set_field() -> None:
    validate(valid(text="", hour=0))


def test_every_violation_is_reported() -> None:
    request = valid(id="", hour=24, part=Part(), tags=["a", "b c"])
    assert sorted(fields(request)) == ["hour", "id", "part.name", "tags[1]"]


def test_elements_of_a_list_that_is_too_long_are_not_checked() -> None:
    # A request may hold 100,000 elements: naming each would delay every other call.
    request = valid(parts=[Part()] * 3, tags=["", "b c", "", ""], by_name=dict.fromkeys("abc", Part()))
    assert sorted(fields(request)) == ["by_name", "parts", "tags"]


def test_elements_of_a_list_that_is_too_short_are_checked() -> None:
    assert sorted(fields(valid(tags=["b c"]))) == ["tags", "tags[0]"]


def test_descriptions_say_what_is_required() -> None:
    request = valid(text="abcdef", hour=24, least=0, parts=[Part(name="x")] * 3, lasts=span(61))
    assert {one.field: one.description for one in violations(request)} == {
        "text": "must have 2 to 5 characters",
        "hour": "must be 0 to 23",
        "least": "must be at least 1",
        "parts": "must have at most 2 elements",
        "lasts": "must be 1 to 60 seconds",
    }


def test_an_update_mask_names_fields_that_exist() -> None:
    paths = ["text", "part.name", "parts", "at", "again.again.hour"]
    validate_update(UpdateRequest(everything=valid(), update_mask=field_mask_pb2.FieldMask(paths=paths)))


@pytest.mark.parametrize(
    "path",
    [
        "colour",
        "",
        "*",
        ".",
        "text.",
        "text.length",
        "parts.name",
        "parts[0]",
        "at.seconds",
        "part.name.x",
        "part..name",
    ],
)
def test_an_update_mask_with_any_other_path_is_refused(path: str) -> None:
    request = UpdateRequest(everything=valid(), update_mask=field_mask_pb2.FieldMask(paths=["text", path]))
    (violation,) = violations(request, validate_update)
    assert violation.field == "update_mask"
    assert repr(path) in violation.description


@pytest.mark.parametrize("path", ["text", "colour"])
def test_an_update_mask_has_a_limit(path: str) -> None:
    request = UpdateRequest(everything=valid(), update_mask=field_mask_pb2.FieldMask(paths=[path] * 201))
    (violation,) = violations(request, validate_update)
    assert violation == Violation(field="update_mask", description="must have at most 200 paths")
    validate_update(UpdateRequest(everything=valid(), update_mask=field_mask_pb2.FieldMask(paths=["text"] * 200)))


@pytest.mark.parametrize(
    "field",
    [
        "int32 x = 1 [(postflow.rules.v1.rules) = {max_len: 1}];",
        "string x = 1 [(postflow.rules.v1.rules) = {gte: 1}];",
        "string x = 1 [(postflow.rules.v1.rules) = {max_items: 1}];",
        "bytes x = 1 [(postflow.rules.v1.rules) = {pattern: 'x'}];",
        "bool x = 1 [(postflow.rules.v1.rules) = {lte: 1}];",
        "google.protobuf.Timestamp x = 1 [(postflow.rules.v1.rules) = {gte: 1}];",
        "google.protobuf.FieldMask x = 1;",
        "google.protobuf.FieldMask x = 1; Other a = 2; Other b = 3;",
    ],
)
def test_a_rule_that_does_not_fit_is_found_when_the_server_is_built(field: str) -> None:
    name = "misfit_" + re.sub(r"\W", "", field)
    text = HEAD.replace("checked.v1", f"{name}.v1") + f"message Misfit {{ {field} }} message Other {{}}"
    misfit: Any = compile_proto(f"{name}.proto", text)["Misfit"]
    with pytest.raises(RuleError, match="Misfit"):
        validator(misfit.DESCRIPTOR)


def test_a_message_without_rules_is_still_held_to_known_enum_values() -> None:
    free: Any = MESSAGES["Free"]
    check = validator(free.DESCRIPTOR)
    check(free(number=-5, flag=True, kind=1))
    assert fields(free(kind=3), check) == ["kind"]


def refusal(request: Any) -> InvalidRequest | None:
    try:
        validate(request)
    except InvalidRequest as refused:
        return refused
    return None


def converts(at: timestamp_pb2.Timestamp) -> bool:
    try:
        at.ToDatetime()
    except (ValueError, OverflowError):
        return False
    return 0 <= at.nanos < 10**9


moments = st.builds(
    timestamp_pb2.Timestamp,
    seconds=st.integers(-(2**63), 2**63 - 1) | st.integers(-62135596801, 253402300800),
    nanos=st.integers(-2, 1_000_000_001),
)


@given(moments)
def test_an_instant_is_accepted_exactly_when_it_converts(at: timestamp_pb2.Timestamp) -> None:
    assert (refusal(valid(at=at)) is None) == converts(at)


@given(st.text(st.characters(codec="utf-8")) | st.from_regex(r"[A-Za-z0-9_-]{0,66}\Z"))
def test_an_id_is_accepted_exactly_when_it_has_the_form(text: str) -> None:
    has_form = re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text) is not None
    assert (refusal(valid(id=text)) is None) == has_form


@given(st.binary(max_size=200))
def test_any_request_that_decodes_is_accepted_or_refused(raw: bytes) -> None:
    try:
        request = Everything.FromString(raw)
    except DecodeError:
        return
    refused = refusal(request)
    assert refused is None or all(one.field and one.description for one in refused.violations)
