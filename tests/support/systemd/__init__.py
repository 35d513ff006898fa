"""Units of systemd, with and without systemd."""
