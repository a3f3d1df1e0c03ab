"""Tells transient errors apart: a dependency is unreachable for now, and a retry is right."""

from collections.abc import Callable

from servicekit.faults import Unavailable

Recogniser = Callable[[BaseException], bool]

_recognisers: list[Recogniser] = []


def recognise(recogniser: Recogniser) -> None:
    """Adds a recogniser for the errors of one client library, where that library is imported."""
    if recogniser not in _recognisers:
        _recognisers.append(recogniser)


def is_transient(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(is_transient(one) for one in error.exceptions)
    return _is_disconnect(error) or any(recogniser(error) for recogniser in _recognisers)


def _is_disconnect(error: BaseException) -> bool:
    # asyncio raises a plain OSError when a name has several addresses and none answers.
    return isinstance(error, Unavailable | ConnectionError | TimeoutError) or type(error) is OSError
