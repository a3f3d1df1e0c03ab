"""Limits how many calls expand rules in worker threads.

Expensive rules are expanded in threads, so that timers and other calls are not blocked.
"""

import asyncio

_AT_ONCE = 2


def worker_slots() -> asyncio.Semaphore:
    """Returns the limit for the calls of one kind.

    More threads would only compete for one interpreter with each other and with the event loop. Callers acquire a slot
    before they open a connection, so that a waiting call holds no connection.
    """
    return asyncio.Semaphore(_AT_ONCE)
