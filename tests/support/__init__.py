"""Shared parts of the tests: builders, assertions, servers and clients."""
