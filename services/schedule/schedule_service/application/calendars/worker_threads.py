"""Rules that take long to reckon are reckoned in threads, which timers and cheap calls need not wait for."""

import asyncio

_AT_ONCE = 2


def places() -> asyncio.Semaphore:
    """For the calls of one kind. More at once would only take turns on one interpreter, and with everything else that
    waits for it. It is taken before the database is: who waits for a place holds no connection."""
    return asyncio.Semaphore(_AT_ONCE)
