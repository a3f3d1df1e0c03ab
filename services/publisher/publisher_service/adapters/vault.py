"""Credentials at rest: AES-256-GCM, bound to their row: a ciphertext moved elsewhere does not open."""

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from servicekit.run.settings import Secret, SettingsError

_KEY_BYTES = 32
_NONCE_BYTES = 12
_FORM = b"\x01"


class CredentialsUnreadable(Exception):
    """The stored credentials were not sealed with this key, or not for this account."""


class Vault:
    """A sealed text is: form (1 byte), nonce (12), ciphertext with tag."""

    def __init__(self, key: Secret) -> None:
        try:
            raw = base64.b64decode(key.reveal(), validate=True)
        except ValueError:
            raw = b""
        if len(raw) != _KEY_BYTES:
            raise SettingsError("POSTFLOW_PUBLISHER_CREDENTIALS_KEY: must be 32 bytes in base64")
        self._cipher = AESGCM(raw)

    def seal(self, token: str, *, organization_id: str, account_id: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return _FORM + nonce + self._cipher.encrypt(nonce, token.encode(), _place(organization_id, account_id))

    def open(self, sealed: bytes, *, organization_id: str, account_id: str) -> str:
        nonce = sealed[1 : 1 + _NONCE_BYTES]
        if sealed[:1] != _FORM or len(nonce) != _NONCE_BYTES:
            raise CredentialsUnreadable(f"credentials of account {account_id} have an unknown form")
        try:
            opened = self._cipher.decrypt(nonce, sealed[1 + _NONCE_BYTES :], _place(organization_id, account_id))
        except InvalidTag:
            raise CredentialsUnreadable(f"credentials of account {account_id} do not open with this key") from None
        return opened.decode()


def _place(organization_id: str, account_id: str) -> bytes:
    return f"social_account|{organization_id}|{account_id}|access_token".encode()
