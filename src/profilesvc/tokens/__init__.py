"""Tokens: issue and read them, manage the signing keys, and read the keys of identity providers."""
