"""The provider's emulator and client, and a provider that fails."""
