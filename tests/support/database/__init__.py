"""Databases that fail, clusters of them, and what statements do to them."""
