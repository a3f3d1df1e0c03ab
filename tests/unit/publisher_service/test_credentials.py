"""Credentials show none of their secrets."""

from publisher_service.domain.credentials import ERASED, Credentials


def test_credentials_show_no_secret() -> None:
    whole = Credentials(access_token="access-1", refresh_token="refresh-1", user_token="user-1")
    assert not [secret for secret in whole.secrets if secret in f"{whole!r} {whole!s} {[whole]!r}"]
    assert len(whole.secrets) == 3


def test_erased_credentials_hold_no_secret() -> None:
    assert ERASED.secrets == ()
    assert ERASED.is_bare
