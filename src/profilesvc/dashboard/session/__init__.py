"""Signing in, and a browser's session."""
