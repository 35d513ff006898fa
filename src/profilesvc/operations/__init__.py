"""What operators and the clock do: housekeeping, counts, seeding, readiness, the operator's commands."""
