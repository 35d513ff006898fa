"""Processes that are killed, and what must be left of their work."""
