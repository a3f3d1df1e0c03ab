"""Sealed credentials open with their key and in their row, and nowhere else."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from servicekit.run.settings import Secret, SettingsError

KEY = Secret(base64.b64encode(bytes(range(32))).decode())
VAULT = Vault(KEY)
TOKEN = "token-canary-7f3a"


def sealed(token: str = TOKEN) -> bytes:
    return VAULT.seal(token, organization_id="acme", account_id="page")


def refusal(vault: Vault, data: bytes, organization_id: str = "acme", account_id: str = "page") -> str:
    with pytest.raises(CredentialsUnreadable) as refused:
        vault.open(data, organization_id=organization_id, account_id=account_id)
    assert refused.value.__cause__ is None
    return str(refused.value)


@given(st.text())
def test_what_is_sealed_opens_again(token: str) -> None:
    data = sealed(token)
    assert VAULT.open(data, organization_id="acme", account_id="page") == token


def test_the_token_is_not_in_the_sealed_form_and_two_seals_differ() -> None:
    assert TOKEN.encode() not in sealed()
    assert sealed() != sealed()


@pytest.mark.parametrize(("organization_id", "account_id"), [("acme", "other"), ("other", "page"), ("page", "acme")])
def test_credentials_moved_to_another_row_do_not_open(organization_id: str, account_id: str) -> None:
    assert TOKEN not in refusal(VAULT, sealed(), organization_id, account_id)


@given(st.data())
def test_a_flipped_bit_is_noticed(data: st.DataObject) -> None:
    damaged = bytearray(sealed())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    refusal(VAULT, bytes(damaged))


@given(st.binary(max_size=40))
def test_whatever_else_stands_in_the_row_is_refused(data: bytes) -> None:
    refusal(VAULT, data)
    refusal(VAULT, b"\x01" + data)


def test_another_key_does_not_open() -> None:
    refusal(Vault(Secret(base64.b64encode(bytes(32)).decode())), sealed())


@pytest.mark.parametrize(
    "key",
    ["", "short", base64.b64encode(bytes(31)).decode(), base64.b64encode(bytes(33)).decode(), "ä" * 44, "=" * 44],
)
def test_a_key_that_is_none_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(SettingsError, match="32 bytes in base64") as refused:
        Vault(Secret(key))
    assert not key or key not in str(refused.value)
