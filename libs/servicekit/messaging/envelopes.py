"""Packs rows of the outbox into messages, the envelopes."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from servicekit.bus.publisher import Outgoing
from servicekit.pg.outbox import MOST_EVENTS, PACK_BYTES, OutboxRow


def envelopes(rows: Iterable[OutboxRow]) -> Iterator[list[OutboxRow]]:
    """Groups rows of one subject, keeping their order."""
    open_packs: dict[str, tuple[list[OutboxRow], int, int]] = {}
    for row in rows:
        pack, events, size = open_packs.get(row.subject, ([], 0, 0))
        if pack and (events + row.events > MOST_EVENTS or size + len(row.payload) > PACK_BYTES):
            yield pack
            pack, events, size = [], 0, 0
        pack.append(row)
        open_packs[row.subject] = (pack, events + row.events, size + len(row.payload))
    for pack, _, _ in open_packs.values():
        yield pack


def outgoing(envelope: Sequence[OutboxRow]) -> Outgoing:
    """Joins the payloads end to end: encoded messages of one type make one message with the fields of all."""
    return Outgoing(envelope[0].subject, b"".join(row.payload for row in envelope), _message_id(envelope))


def _message_id(envelope: Sequence[OutboxRow]) -> str:
    """Returns an id of exactly these events: the same rows packed differently must not pass for a duplicate."""
    if len(envelope) == 1:
        return envelope[0].event_id
    return hashlib.blake2b(" ".join(row.event_id for row in envelope).encode(), digest_size=16).hexdigest()
