"""Operators' commands and periodic work: housekeeping, counts, seeding, readiness."""
