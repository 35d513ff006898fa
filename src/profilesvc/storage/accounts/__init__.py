"""Queries on whole accounts: export and deletion."""
