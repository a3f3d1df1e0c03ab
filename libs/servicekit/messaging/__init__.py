"""Carries events from one database through the stream to others: the relay of an outbox, and consumers of events."""
