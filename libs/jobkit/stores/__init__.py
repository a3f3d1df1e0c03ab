"""Where jobs are kept: in memory, or in a table of PostgreSQL."""
