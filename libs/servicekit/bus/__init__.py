"""NATS JetStream: the connection, streams as code, acknowledged publishing, and pulling without loss."""

import sys

# nats-py imports aiohttp where it is installed, as by the development stack, for WebSockets, which nobody uses here: it
# took each process 84 ms and 14.5 MB.
if "aiohttp" not in sys.modules:
    sys.modules["aiohttp"] = None  # type: ignore[assignment]
    import nats.aio.transport  # noqa: F401

    del sys.modules["aiohttp"]
