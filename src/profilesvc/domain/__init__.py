"""Rules of the service, without I/O, clock reads or randomness."""
