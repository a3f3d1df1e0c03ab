from datetime import timedelta

from devstack.networks.meta_tokens import EXPIRED, INVALID, PASSWORD_CHANGED, SHORT, Kind, Tokens
from testkit.clocks import START


def test_a_token_is_good_until_its_end() -> None:
    tokens = Tokens()
    token = tokens.issue("ann", START, life=SHORT)
    assert tokens.subcode(token.value, "page-1", START) is None
    assert tokens.subcode(token.value, "page-1", START + SHORT) == EXPIRED


def test_a_page_token_is_for_its_page_and_dies_with_its_user() -> None:
    tokens = Tokens()
    page = tokens.issue("ann", START, life=None, kind=Kind.PAGE, account="page-1")
    later = START + timedelta(days=900)
    assert tokens.subcode(page.value, "page-1", later) is None
    assert tokens.subcode(page.value, "page-2", later) == INVALID
    tokens.revoke("bob")
    assert tokens.subcode(page.value, "page-1", later) is None
    tokens.revoke("ann")
    assert tokens.subcode(page.value, "page-1", later) == PASSWORD_CHANGED


def test_an_open_token_is_good_for_all_and_others_for_nothing() -> None:
    tokens = Tokens()
    assert tokens.subcode("sandbox-any", "page-1", START) is None
    assert tokens.subcode("sandbox-revoked-1", "page-1", START) == INVALID
    assert tokens.subcode("stolen", "page-1", START) == INVALID
