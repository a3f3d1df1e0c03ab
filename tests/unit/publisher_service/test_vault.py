"""Sealed credentials open with their key and in their row, and nowhere else."""

import base64
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.adapters.vault import CredentialsUnreadable, Vault, key_id_of, read_keys
from publisher_service.domain.credentials import Credentials
from servicekit.run.settings import Secret, SettingsError

KEY = Secret(base64.b64encode(bytes(range(32))).decode())
OTHER = Secret(base64.b64encode(bytes(32)).decode())
VAULT = Vault([("k1", KEY)])
TOKEN = "token-canary-7f3a"
BARE = Credentials(access_token=TOKEN)
WHOLE = Credentials(access_token=TOKEN, refresh_token="refresh-canary-1", user_token="user-canary-2")


def sealed(token: str = TOKEN) -> bytes:
    return VAULT.seal(Credentials(access_token=token), organization_id="acme", account_id="page")


def refusal(vault: Vault, data: bytes, organization_id: str = "acme", account_id: str = "page") -> str:
    with pytest.raises(CredentialsUnreadable) as refused:
        vault.open(data, organization_id=organization_id, account_id=account_id)
    assert refused.value.__cause__ is None
    return str(refused.value)


@given(st.text())
def test_a_sealed_token_opens_again(token: str) -> None:
    data = sealed(token)
    assert VAULT.open(data, organization_id="acme", account_id="page") == Credentials(access_token=token)


def test_the_token_is_not_in_the_sealed_form_and_two_seals_differ() -> None:
    assert TOKEN.encode() not in sealed()
    assert sealed() != sealed()


@pytest.mark.parametrize(("organization_id", "account_id"), [("acme", "other"), ("other", "page"), ("page", "acme")])
def test_credentials_moved_to_another_row_do_not_open(organization_id: str, account_id: str) -> None:
    assert TOKEN not in refusal(VAULT, sealed(), organization_id, account_id)


@given(st.data())
def test_a_flipped_bit_is_detected_except_in_the_name_of_the_key(data: st.DataObject) -> None:
    damaged = bytearray(sealed())
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    if 2 <= place < 4:
        # Any key that fits opens it: keys may be renamed later.
        assert VAULT.open(bytes(damaged), organization_id="acme", account_id="page") == BARE
    else:
        refusal(VAULT, bytes(damaged))


@given(st.binary(max_size=40))
def test_any_other_bytes_are_refused(data: bytes) -> None:
    refusal(VAULT, data)
    refusal(VAULT, b"\x01" + data)


def test_another_key_does_not_open() -> None:
    refusal(Vault([("k1", OTHER)]), sealed())


@pytest.mark.parametrize(
    "key",
    ["", "short", base64.b64encode(bytes(31)).decode(), base64.b64encode(bytes(33)).decode(), "ä" * 44, "=" * 44],
)
def test_an_invalid_key_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(SettingsError, match="32 bytes in base64") as refused:
        Vault([("k1", Secret(key))])
    assert not key or key not in str(refused.value)


def test_the_first_key_seals_and_the_others_still_open() -> None:
    old = sealed()
    rotated = Vault([("k2", OTHER), ("k1", KEY)])
    assert rotated.open(old, organization_id="acme", account_id="page") == BARE
    new = rotated.seal(BARE, organization_id="acme", account_id="page")
    assert (key_id_of(old), key_id_of(new)) == ("k1", "k2")
    assert "key k2" in refusal(VAULT, new)


def test_the_first_format_opens_with_any_key_of_the_ring() -> None:
    nonce = os.urandom(12)
    place = b"social_account|acme|page|access_token"
    former = b"\x01" + nonce + AESGCM(bytes(range(32))).encrypt(nonce, TOKEN.encode(), place)
    assert key_id_of(former) == ""
    for vault in (VAULT, Vault([("k2", OTHER), ("k1", KEY)])):
        assert vault.open(former, organization_id="acme", account_id="page") == BARE


def test_the_ring_is_the_file_and_then_the_single_key(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# newest first\nk2 {OTHER.reveal()}\n\nk1 {KEY.reveal()}\n")
    assert [key_id for key_id, _ in read_keys(Secret(""), str(file))] == ["k2", "k1"]
    assert [key_id for key_id, _ in read_keys(KEY, str(file))] == ["k2", "k1", "default"]
    assert read_keys(KEY, "") == [("default", KEY)]


@pytest.mark.parametrize(
    "content", ["", "# none", "k1", "k1 a b", "k/1 x", f"k1 {KEY.reveal()}\nk1 {OTHER.reveal()}", "\udc00"]
)
def test_an_invalid_key_file_is_refused_without_showing_a_key(tmp_path: Path, content: str) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(SettingsError, match="POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE") as refused:
        Vault(read_keys(Secret(""), str(file)))
    assert KEY.reveal() not in str(refused.value)


def test_without_any_key_both_variables_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="CREDENTIALS_KEY or POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE"):
        Vault(read_keys(Secret(""), ""))
    with pytest.raises(SettingsError, match="cannot be read"):
        read_keys(Secret(""), str(tmp_path / "absent"))


def test_a_key_under_the_name_of_another_does_not_hide_it() -> None:
    """The single key was replaced and the old one moved to the file, under a name of its own."""
    replaced = Vault([("k1", OTHER), ("k0", KEY)])
    assert replaced.open(sealed(), organization_id="acme", account_id="page") == BARE


def test_a_key_of_the_file_may_not_have_the_name_of_the_single_key(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"default {OTHER.reveal()}\n")
    with pytest.raises(SettingsError, match="default"):
        read_keys(KEY, str(file))
    file.write_text(f"default {KEY.reveal()}\n")
    assert read_keys(KEY, str(file)) == [("default", KEY)]


def test_more_than_an_access_token_opens_again_and_shows_nothing() -> None:
    data = VAULT.seal(WHOLE, organization_id="acme", account_id="page")
    assert VAULT.open(data, organization_id="acme", account_id="page") == WHOLE
    assert key_id_of(data) == "k1"
    shown = f"{WHOLE!r} {WHOLE} {VAULT.opened(data, organization_id='acme', account_id='page')!r}"
    assert not [secret for secret in WHOLE.secrets if secret in shown or secret.encode() in data]
    refusal(VAULT, data, "acme", "other")


def test_a_bare_token_is_sealed_as_earlier_releases_read_it() -> None:
    data = sealed()
    name, nonce, rest = data[2:4], data[4:16], data[16:]
    assert (data[:2], name) == (b"\x02\x02", b"k1")
    place = b"social_account|acme|page|access_token"
    assert AESGCM(bytes(range(32))).decrypt(nonce, rest, place) == TOKEN.encode()


def test_an_object_never_passes_for_a_token() -> None:
    """An earlier release finds the form unknown; with another form in front of it the bytes do not open."""
    data = VAULT.seal(WHOLE, organization_id="acme", account_id="page")
    assert data[:1] == b"\x03"
    refusal(VAULT, b"\x02" + data[1:])
    refusal(VAULT, b"\x01" + data[4:])


def test_parts_of_a_newer_release_are_not_left_out() -> None:
    text = '{"access_token": "a", "cookie": "b"}'
    newer = VAULT.seal_text(text, place="social_account|acme|page|access_token")
    assert "more parts" in refusal(VAULT, newer)


def test_a_sealed_text_opens_at_its_place_alone() -> None:
    data = VAULT.seal_text("verifier", place="session|acme|1")
    assert VAULT.open_text(data, place="session|acme|1") == "verifier"
    with pytest.raises(CredentialsUnreadable):
        VAULT.open_text(data, place="session|acme|2")


@given(st.text())
def test_any_text_opens_at_its_place_alone(text: str) -> None:
    data = VAULT.seal_text(text, place="a|b")
    assert VAULT.open_text(data, place="a|b") == text
    assert key_id_of(data) == "k1"
    for vault, place in ((VAULT, "a|c"), (Vault([("k2", OTHER)]), "a|b")):
        with pytest.raises(CredentialsUnreadable) as refused:
            vault.open_text(data, place=place)
        assert refused.value.__cause__ is None
        assert not text or len(text) < 4 or text not in str(refused.value)
