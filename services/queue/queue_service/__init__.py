import servicekit.bus  # noqa: F401 - before nats-py, which is imported here first: see there
