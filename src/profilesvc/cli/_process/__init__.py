"""The process of a command: the address it listens on, its workers, how it stops, its log."""
