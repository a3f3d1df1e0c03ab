from servicekit.versions import newest


def _newest(*items: tuple[str, int, str]) -> list[tuple[str, int, str]]:
    return newest(items, key=lambda item: item[0], version=lambda item: item[1])


def test_the_highest_version_of_each_key_is_returned_in_any_order() -> None:
    assert _newest(("a", 1, "old"), ("b", 7, "b"), ("a", 3, "new"), ("a", 2, "late")) == [
        ("a", 3, "new"),
        ("b", 7, "b"),
    ]


def test_a_second_item_of_a_version_is_a_copy() -> None:
    assert _newest(("a", 1, "first"), ("a", 1, "copy")) == [("a", 1, "first")]


def test_no_items_have_no_newest() -> None:
    assert _newest() == []
