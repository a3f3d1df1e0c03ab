"""Answers as anything may send them: random bytes, random JSON, and JSON that is nearly right."""

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from publisher_service.adapters.providers.http_origin import Answer

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4))
)
STATUSES = st.one_of(
    st.sampled_from([200, 201, 400, 401, 403, 404, 409, 413, 422, 426, 429, 500]), st.integers(100, 599)
)
HEADERS = st.dictionaries(
    st.sampled_from([b"x-restli-id", b"retry-after", b"etag", b"content-type"]), st.binary(max_size=40), max_size=4
)


def objects(known: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Makes objects with some of these fields, of the values that are given or of any."""
    fields = {name: st.one_of(JSON, value) for name, value in known.items()}
    return st.fixed_dictionaries({}, optional=fields)


def answers(bodies: st.SearchStrategy[Any]) -> st.SearchStrategy[Answer]:
    """Makes answers with one of these bodies, or with any."""
    encoded = st.one_of(bodies, JSON).map(lambda body: json.dumps(body).encode("utf-8", "replace"))
    return st.builds(Answer, STATUSES, HEADERS, st.one_of(encoded, st.binary()))
