"""Business Profile Management Service: an API to the profiles of businesses at an external provider."""

__version__ = "0.1.0"
