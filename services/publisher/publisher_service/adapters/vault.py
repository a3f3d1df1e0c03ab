"""Secrets at rest: sealed by AES-256-GCM and bound to their row, so a ciphertext that is moved does not open.

The keys form a ring: the first one seals, and each opens what it has sealed. A sealed text of form 2 or 3 names its
key, which is tried first; form 1 is that of earlier releases. Forms 1 and 2 are an access token alone. Form 3 is an
object in JSON: releases that do not know it find it unreadable, and never send it as a token.
"""

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from publisher_service.domain.credentials import Credentials
from servicekit.record import record
from servicekit.run.settings import Secret, SettingsError

_KEY_BYTES = 32
_NONCE_BYTES = 12
_NAMELESS = b"\x01"
_NAMED = b"\x02"
_OBJECT = b"\x03"
_KEY_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_VARIABLE = "POSTFLOW_PUBLISHER_CREDENTIALS_KEY"
_FILE_VARIABLE = "POSTFLOW_PUBLISHER_CREDENTIALS_KEYS_FILE"
DEFAULT_ID = "default"


class CredentialsUnreadable(Exception):
    """None of this process's keys opens the stored credentials, or they belong to another account."""


@record(frozen=True, slots=True, kw_only=True)
class Opened:
    """Credentials, and the id of the key that opened them."""

    key_id: str
    credentials: Credentials


class Vault:
    """Seals and opens secrets.

    A sealed text is the form (1 byte), from form 2 on the length and id of the key, the nonce (12), ciphertext and tag.
    """

    def __init__(self, keys: Iterable[tuple[str, Secret]]) -> None:
        """`keys` are pairs of an id and 32 bytes in base64; the first one seals."""
        ring = {key_id: _cipher(key) for key_id, key in keys}
        if not ring:
            raise SettingsError(f"{_VARIABLE} or {_FILE_VARIABLE}: one of them must be set")
        self._ring: Mapping[str, AESGCM] = ring
        self.current = next(iter(ring))

    def seal(self, credentials: Credentials, *, organization_id: str, account_id: str) -> bytes:
        place = _place(organization_id, account_id)
        if credentials.is_bare:
            return self._sealed(_NAMED, credentials.access_token, place)
        return self._sealed(_OBJECT, json.dumps(_fields(credentials)), place)

    def open(self, sealed: bytes, *, organization_id: str, account_id: str) -> Credentials:
        return self.opened(sealed, organization_id=organization_id, account_id=account_id).credentials

    def opened(self, sealed: bytes, *, organization_id: str, account_id: str) -> Opened:
        what = f"credentials of account {account_id}"
        key_id, text = self._opened(sealed, _place(organization_id, account_id), what)
        if sealed[:1] != _OBJECT:
            return Opened(key_id=key_id, credentials=Credentials(access_token=text))
        try:
            return Opened(key_id=key_id, credentials=Credentials(**json.loads(text)))
        except TypeError:
            # Of a newer release: to leave a secret out would lose it with the next seal.
            raise CredentialsUnreadable(f"{what} have more parts than this release knows") from None

    def seal_text(self, text: str, *, place: str) -> bytes:
        """Seals any text; it opens at this place alone."""
        return self._sealed(_OBJECT, text, place.encode())

    def open_text(self, sealed: bytes, *, place: str) -> str:
        return self._opened(sealed, place.encode(), "parts of a sealed text")[1]

    def _sealed(self, form: bytes, text: str, place: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        name = self.current.encode()
        sealed = self._ring[self.current].encrypt(nonce, text.encode(), _bound(form, place))
        return form + bytes([len(name)]) + name + nonce + sealed

    def _opened(self, sealed: bytes, place: bytes, what: str) -> tuple[str, str]:
        """Opens a text with the key that it names, or any other: the name may have been given to another key since."""
        name, rest = _parted(sealed, what)
        bound = _bound(sealed[:1], place)
        for key_id in (name, *self._ring):
            try:
                return key_id, self._ring[key_id].decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], bound).decode()
            except (KeyError, InvalidTag):
                continue
        sealed_with = f" (sealed with key {name})" if name else ""
        raise CredentialsUnreadable(f"{what} open with no key of this process{sealed_with}")


def key_id_of(sealed: bytes) -> str:
    """Returns the id of the key that sealed the text; empty for form 1, and for an unknown one."""
    try:
        return _parted(sealed, "")[0]
    except CredentialsUnreadable:
        return ""


def read_keys(key: Secret, file: str) -> list[tuple[str, Secret]]:
    """Returns the keys of the file, in its order, then the single key under the id `default`."""
    keys = _keys_in(Path(file)) if file else []
    if not key.reveal() or (DEFAULT_ID, key) in keys:
        return keys
    if DEFAULT_ID in dict(keys):
        raise SettingsError(f"{_FILE_VARIABLE}: {file} has another key than {_VARIABLE} under the id {DEFAULT_ID}")
    return [*keys, (DEFAULT_ID, key)]


def _keys_in(file: Path) -> list[tuple[str, Secret]]:
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{_FILE_VARIABLE}: {file} cannot be read: {type(error).__name__}") from None
    keys: dict[str, Secret] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not _KEY_ID.fullmatch(words[0]) or words[0] in keys:
            raise SettingsError(f"{_FILE_VARIABLE}: line {number} of {file} must be: KEY-ID BASE64-KEY, each id once")
        keys[words[0]] = Secret(words[1])
    if not keys:
        raise SettingsError(f"{_FILE_VARIABLE}: {file} holds no key")
    return list(keys.items())


def _cipher(key: Secret) -> AESGCM:
    try:
        raw = base64.b64decode(key.reveal(), validate=True)
    except ValueError:
        raw = b""
    if len(raw) != _KEY_BYTES:
        raise SettingsError(f"{_VARIABLE} and each key of {_FILE_VARIABLE}: must be 32 bytes in base64")
    return AESGCM(raw)


def _parted(sealed: bytes, what: str) -> tuple[str, bytes]:
    """Returns the id of the key, empty if the form names none, and the nonce with the ciphertext."""
    key_id, rest = "", sealed[1:]
    if sealed[:1] in (_NAMED, _OBJECT) and len(sealed) > 1:
        length = sealed[1]
        key_id, rest = sealed[2 : 2 + length].decode("ascii", "replace"), sealed[2 + length :]
    elif sealed[:1] != _NAMELESS:
        rest = b""
    if len(rest) < _NONCE_BYTES:
        raise CredentialsUnreadable(f"{what} have an unknown form")
    return key_id, rest


def _place(organization_id: str, account_id: str) -> bytes:
    return f"social_account|{organization_id}|{account_id}|access_token".encode()


def _bound(form: bytes, place: bytes) -> bytes:
    """Returns what a ciphertext is bound to: objects to their form, too, so that none passes for a token."""
    return form + place if form == _OBJECT else place


def _fields(credentials: Credentials) -> Mapping[str, str]:
    names = (field.name for field in fields(Credentials))
    return {name: value for name in names if (value := getattr(credentials, name))}
