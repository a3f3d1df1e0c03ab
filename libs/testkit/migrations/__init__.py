"""Migrations for tests of servicekit itself: the tables that every service has, and no others."""
