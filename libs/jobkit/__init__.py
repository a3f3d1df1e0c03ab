"""Runs the jobs of a table when they are due: once, later, or again and again; by any number of workers."""
