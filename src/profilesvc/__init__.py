"""Business Profile Management Service: an API to the profiles of businesses at an external provider."""

__version__ = "1.0.0rc1"
