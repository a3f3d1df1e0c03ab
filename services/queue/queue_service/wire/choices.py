"""Choices between fields of a request, of which callers give one."""

from google.protobuf.message import Message

from servicekit.faults import InvalidField


def nothing_chosen(message: Message, choice: str) -> InvalidField:
    """Returns the refusal of a message without any field of a oneof. It lists them: the oneof is in no request."""
    *others, last = (field.name for field in message.DESCRIPTOR.oneofs_by_name[choice].fields)
    return InvalidField(choice, f"is required: give {', '.join(others)} or {last}")
