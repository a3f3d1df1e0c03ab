"""Whole stacks under test: calls of one organization, things that break, and checks of what is left afterwards."""
