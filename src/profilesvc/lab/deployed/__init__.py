"""Notebooks against a deployed service: what they may do, and how they undo it."""
