"""Blocks and tables of the documentation, of notebooks and of translations."""
