from collections.abc import Iterator

from benchmarks.wal import named, read


def record(manager: str, action: str, relation: str = "", *, tx: int = 9, size: int = 64, details: str = "") -> str:
    blocks = f", blkref #0: rel 1663/{relation} blk 0" if relation else ""
    return (
        f"rmgr: {manager:<11} len (rec/tot): {size:6}/{size:6}, tx: {tx:10}, lsn: 0/03755328, prev 0/037552F0, "
        f"desc: {action} {details}{blocks}\n"
    )


def log() -> Iterator[str]:
    yield record("Heap", "INSERT+INIT", "5/100", details="off: 1, flags: 0x00")
    yield record("Btree", "INSERT_LEAF", "5/101", details="off: 2")
    yield record("Heap", "UPDATE", "5/100", details="old_xmax: 943, old_infobits: []")
    yield record("Heap", "HOT_UPDATE", "5/100")
    yield record("Heap", "LOCK", "5/100")
    yield record("Heap2", "MULTI_INSERT", "6/100", tx=10, details="ntuples: 38, flags: 0x02")
    yield record("Transaction", "COMMIT", size=34, details="2026-11-19 08:18:44.538015 UTC")
    yield record("Transaction", "COMMIT", tx=10, size=34, details="2026-11-19 08:18:44.538015 UTC")


def test_rows_and_index_entries_are_counted_by_relation() -> None:
    found = read(log())
    table = ("5", "100")
    assert [found.inserted[table], found.updated[table], found.hot[table], found.locked[table]] == [1, 1, 1, 1]
    assert found.entries == {("5", "101"): 1}
    assert found.inserted["6", "100"] == 38


def test_a_commit_counts_to_the_database_that_it_has_written_to() -> None:
    found = read(log())
    assert found.commits == {"5": 1, "6": 1}
    assert found.bytes == {"5": 5 * 64 + 34, "6": 64 + 34}


def test_the_entry_that_splits_a_leaf_counts_and_those_above_do_not() -> None:
    found = read(
        [
            record("Btree", "SPLIT_R", "5/101", details="level: 0, firstrightoff: 75"),
            record("Btree", "SPLIT_L", "5/101", details="level: 1, firstrightoff: 75"),
            record("Btree", "INSERT_UPPER", "5/101", details="off: 2"),
            record("Btree", "INSERT_POST", "5/101", details="off: 2"),
        ]
    )
    assert found.entries == {("5", "101"): 2}


def test_images_of_pages_count_to_the_size_alone() -> None:
    found = read([record("XLOG", "FPI_FOR_HINT", "5/100", size=8241), "pg_waldump: first record is after 0/1\n"])
    assert (found.bytes, found.inserted) == ({"5": 8241}, {})


def test_an_index_is_added_to_its_table_and_catalogs_stay_out() -> None:
    names = {("5", "100"): ("queue", "slot"), ("5", "101"): ("queue", "slot")}
    found = named(read([*log(), record("Heap", "INSERT", "5/1259")]), names)
    assert found.entries == {("queue", "slot"): 1}
    assert found.inserted == {("queue", "slot"): 1}
    assert found.commits == {"queue": 1, "other": 1}
