"""Time zones for tests: an independent reading of the compiled zones, and zones made to measure."""
