"""The external provider: its operations as an interface, and one client for the real provider and the emulator."""
