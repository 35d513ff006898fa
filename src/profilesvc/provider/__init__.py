"""The external provider: a port in domain words, one real client, and an emulator behind the same client."""
