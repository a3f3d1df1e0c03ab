from benchmarks.statements import counted


def test_statements_and_transactions_are_counted_by_database() -> None:
    found = counted(
        [
            "[7 queue] LOG:  statement: BEGIN ISOLATION LEVEL READ COMMITTED;",
            "[7 queue] LOG:  execute __asyncpg_stmt_1__: select 1",
            "[9 drafts] LOG:  execute __asyncpg_stmt_1__: select 2",
            "[7 queue] LOG:  statement: COMMIT;",
            "[7 queue] LOG:  execute <unnamed>: select 3",
        ]
    )
    assert found.statements == {"queue": 4, "drafts": 1}
    assert found.transactions == {"queue": 2, "drafts": 1}


def test_a_transaction_that_is_rolled_back_is_one() -> None:
    lines = ["BEGIN;", "select 1", "ROLLBACK;", "select 2"]
    assert counted(f"[7 queue] LOG:  statement: {text}" for text in lines).transactions == {"queue": 2}


def test_a_savepoint_ends_no_transaction() -> None:
    lines = ["BEGIN;", "SAVEPOINT a", "ROLLBACK TO a", "select 1", "COMMIT;"]
    assert counted(f"[7 queue] LOG:  statement: {text}" for text in lines).transactions == {"queue": 1}


def test_a_text_of_several_lines_is_one_statement() -> None:
    found = counted(
        ["[7 queue] LOG:  execute a: ", "\t    select 1", "\tfrom slot", "[7 queue] LOG:  execute a: select 2"]
    )
    assert found.texts == {"queue: select 1 from slot": 1, "queue: select 2": 1}


def test_other_lines_and_our_own_statements_do_not_count() -> None:
    found = counted(
        [
            "[7 queue] ERROR:  deadlock detected",
            "[7 queue] DETAIL:  Parameters: $1 = 'a'",
            "[8 postgres] LOG:  statement: select 'the phase ends here'",
            "\tgoes on",
            "[12 ] LOG:  parameter changed",
        ]
    )
    assert (found.statements, found.texts) == ({}, {})
