"""Queries on the log of requests and the overview."""
