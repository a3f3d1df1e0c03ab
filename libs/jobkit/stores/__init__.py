"""The stores that jobkit brings: memory, and any table in PostgreSQL."""
