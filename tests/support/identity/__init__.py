"""Issuers of identities, and OAuth clients."""
