"""NATS JetStream: the connection, streams as code, acknowledged publishing, and consumers that lose nothing."""
