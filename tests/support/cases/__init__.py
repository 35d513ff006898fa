"""Values that several suites try."""
