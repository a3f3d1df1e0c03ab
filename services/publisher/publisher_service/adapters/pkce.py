"""Secrets of a visit to a provider: the state that names it, and the verifier of its code."""

import base64
import hashlib
import secrets

# 43 characters each, of the alphabet that RFC 7636 allows.
_BYTES = 32


def new_state() -> str:
    return secrets.token_urlsafe(_BYTES)


def new_verifier() -> str:
    return secrets.token_urlsafe(_BYTES)


def challenge_of(verifier: str) -> str:
    """Returns the challenge of the method S256."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
