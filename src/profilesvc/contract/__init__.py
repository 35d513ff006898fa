"""What is visible on the wire: bodies, queries, the envelope and the error catalogue."""
