"""Queries of housekeeping and of the operator's counts."""
