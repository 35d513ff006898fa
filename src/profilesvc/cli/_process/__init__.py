"""The process behind a command: its listening address, its workers, its end, its log."""
