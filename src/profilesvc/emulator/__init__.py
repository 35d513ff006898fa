"""An emulator of the provider with its own database file, for development, the lab and tests."""
