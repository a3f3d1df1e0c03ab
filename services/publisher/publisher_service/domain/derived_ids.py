"""Ids that are computed from what they stand for, so that a repeat has the same id, wherever it is made."""

import hashlib


def derived_id(*parts: str) -> str:
    """Returns a UUIDv8 of the parts.

    No part can contain the separator: messages with a NUL are refused, and PostgreSQL stores none.
    """
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"
