import pytest

from servicekit.pg.session import Statement


@pytest.mark.parametrize(
    ("text", "sql", "names"),
    [
        ("select 1", "select 1", ()),
        ("select :a", "select $1", ("a",)),
        ("select :b, :a, :b", "select $1, $2, $1", ("b", "a")),
        ("select cast(:a as text[]), x::text", "select cast($1 as text[]), x::text", ("a",)),
        ("select ids[1:n] from t where n = :n", "select ids[1:n] from t where n = $1", ("n",)),
        ("select :a_1+:a_10", "select $1+$2", ("a_1", "a_10")),
    ],
)
def test_names_become_numbers(text: str, sql: str, names: tuple[str, ...]) -> None:
    statement = Statement(text)
    assert (statement.sql, statement.names, statement.text) == (sql, names, text)


@pytest.mark.parametrize("text", ["select 1", "select :a", "select :a, :b", "select :b, :a, :b"])
def test_values_come_in_the_order_of_the_numbers(text: str) -> None:
    statement = Statement(text)
    values = {"a": 1, "b": 2, "unused": 3}
    assert statement.arguments(values) == tuple(values[name] for name in statement.names)


@pytest.mark.parametrize("text", ["select :a", "select :a, :b"])
def test_a_missing_value_is_refused(text: str) -> None:
    with pytest.raises(KeyError):
        Statement(text).arguments({"b": 1})
