"""Queries on drafts and photos."""
