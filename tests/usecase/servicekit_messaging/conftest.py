from testkit.service_tables import database, service_tables, tables_url

__all__ = ["database", "service_tables", "tables_url"]
