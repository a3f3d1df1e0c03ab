"""PostgreSQL: the database handle, and the tables that every service has: outbox, inbox, request ledger, dead letters."""
