"""NATS JetStream: the connection, streams as code, acknowledged publishing, and pulling without loss."""
