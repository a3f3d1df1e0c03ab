"""Standard Webhooks (https://www.standardwebhooks.com): signs what is posted to a webhook, and verifies it.

A receiver knows the sender by a secret that both have, and a repeat by its id, which every attempt has in common.
"""

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from servicekit.run.settings import Secret

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
TOLERANCE: Final = timedelta(minutes=5)
"""How far the time of a message may be from the receiver's: an older one may be a copy that somebody sends again."""

_PREFIX: Final = "whsec_"
_VERSION: Final = "v1"
_FRESH_BYTES: Final = 32
# The bounds of the specification.
_FEWEST_BYTES: Final = 24
_MOST_BYTES: Final = 64


class InvalidSecret(ValueError):
    """A secret does not have the form `whsec_` and 24 to 64 bytes in base64."""


class NotVerified(Exception):
    """A message is not from the one who has the secret, or too old."""


def new_secret() -> Secret:
    return Secret(_PREFIX + base64.b64encode(os.urandom(_FRESH_BYTES)).decode())


def require_secret(secret: Secret) -> Secret:
    """Returns the secret; raises InvalidSecret, without a word of it, if it has another form."""
    _key(secret)
    return secret


def signed(message_id: str, body: bytes, secrets: Sequence[Secret], *, at: datetime) -> dict[str, str]:
    """Returns the headers of a message: a signature by each secret, so that one may replace the other meanwhile."""
    # The dot separates the parts that are signed: with one in the id they could be parted in another way.
    if not message_id or "." in message_id or not (message_id.isascii() and message_id.isprintable()):
        raise ValueError("the id of a message is printable ASCII without a dot")
    assert secrets, "a message without a signature proves nothing"
    seconds = str(int(at.timestamp()))
    return {
        ID: message_id,
        TIMESTAMP: seconds,
        SIGNATURE: " ".join(_signature(message_id, seconds, body, secret) for secret in secrets),
    }


def verify(
    headers: Mapping[str, str], body: bytes, secret: Secret, *, now: datetime, tolerance: timedelta = TOLERANCE
) -> str:
    """Returns the id of a message that was signed with the secret; raises NotVerified for any other.

    `headers` has its names in lower case. What receivers do; here it serves tests, and as an example.
    """
    try:
        message_id, seconds, signatures = headers[ID], headers[TIMESTAMP], headers[SIGNATURE]
    except KeyError as missing:
        raise NotVerified(f"the header {missing.args[0]} is missing") from None
    if abs(now - _moment(seconds)) > tolerance:
        raise NotVerified(f"{TIMESTAMP} is too far from now")
    expected = _signature(message_id, seconds, body, secret).encode()
    if not any(hmac.compare_digest(each.encode(), expected) for each in signatures.split()):
        raise NotVerified(f"{SIGNATURE} has no signature of the secret")
    return message_id


def _moment(seconds: str) -> datetime:
    # Eleven digits reach beyond the year 5000, and no further than a datetime does.
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) <= 11):
        raise NotVerified(f"{TIMESTAMP} is no number of seconds")
    return datetime.fromtimestamp(int(seconds), UTC)


def _signature(message_id: str, seconds: str, body: bytes, secret: Secret) -> str:
    digest = hmac.digest(_key(secret), f"{message_id}.{seconds}.".encode() + body, hashlib.sha256)
    return f"{_VERSION},{base64.b64encode(digest).decode()}"


def _key(secret: Secret) -> bytes:
    text = secret.reveal()
    try:
        key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not (text.startswith(_PREFIX) and _FEWEST_BYTES <= len(key) <= _MOST_BYTES):
        raise InvalidSecret(f"must be {_PREFIX} and {_FEWEST_BYTES} to {_MOST_BYTES} bytes in base64")
    return key
