"""Queries on reviews that were read, and templates of replies."""
