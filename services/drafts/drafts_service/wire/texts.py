"""Bounds of texts that others have written."""

# Characters of an error in a batch: 200 of them fit into a response.
LONGEST_MESSAGE = 500
