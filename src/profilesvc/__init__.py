"""Business Profile Management Service: the whole API over an embedded or a real provider."""

__version__ = "0.1.0"
