"""Runs the jobs of a table when they are due, once or repeatedly, with any number of workers and processes."""
