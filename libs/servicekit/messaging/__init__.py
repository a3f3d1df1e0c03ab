"""Events from a database through the stream to another database: the relay of an outbox, and consumers of events."""
