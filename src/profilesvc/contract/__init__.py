"""The wire format: bodies, queries, the envelope and the error catalogue."""
