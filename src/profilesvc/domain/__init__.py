"""Rules of the service; no I/O, no clock reads, no randomness of its own."""
