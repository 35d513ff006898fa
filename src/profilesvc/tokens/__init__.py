"""Tokens: signing and reading them, the signing keys, the keys of identity providers."""
