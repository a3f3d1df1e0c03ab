"""What all calls that change something have in common."""

from hashlib import sha256

from google.protobuf.message import Message

from servicekit.pg.ledger import RequestKey


def request_key(organization_id: str, method: str, request_id: str, request: Message) -> RequestKey:
    return RequestKey(
        organization_id=organization_id,
        method=method,
        request_id=request_id,
        request_digest=sha256(request.SerializeToString(deterministic=True)).digest(),
    )
