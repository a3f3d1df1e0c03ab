"""PostgreSQL: the database handle, and the tables of every service: outbox, inbox, request ledger, dead letters."""
