"""The provider as a stateful Quart app over a database file of its own, for development, the lab and tests."""
