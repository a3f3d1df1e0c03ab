"""Packs rows of the outbox into messages, the envelopes."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from servicekit.bus.publisher import Outgoing
from servicekit.pg.outbox import OutboxRow

_MOST_PER_ENVELOPE = 50
_ENVELOPE_BYTES = 256 * 1024


def envelopes(rows: Iterable[OutboxRow]) -> Iterator[list[OutboxRow]]:
    """Groups rows of one subject, keeping their order."""
    open_packs: dict[str, tuple[list[OutboxRow], int]] = {}
    for row in rows:
        pack, size = open_packs.get(row.subject, ([], 0))
        if pack and (len(pack) == _MOST_PER_ENVELOPE or size + len(row.payload) > _ENVELOPE_BYTES):
            yield pack
            pack, size = [], 0
        pack.append(row)
        open_packs[row.subject] = (pack, size + len(row.payload))
    for pack, _ in open_packs.values():
        yield pack


def outgoing(envelope: Sequence[OutboxRow]) -> Outgoing:
    """Joins the payloads end to end: encoded messages of one type make one message with the fields of all."""
    return Outgoing(envelope[0].subject, b"".join(row.payload for row in envelope), _message_id(envelope))


def _message_id(envelope: Sequence[OutboxRow]) -> str:
    """Returns an id of exactly these events: the same rows packed differently must not pass for a duplicate."""
    if len(envelope) == 1:
        return envelope[0].event_id
    return hashlib.blake2b(" ".join(row.event_id for row in envelope).encode(), digest_size=16).hexdigest()
