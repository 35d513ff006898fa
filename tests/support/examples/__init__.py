"""The examples of `openapi.json`, recorded from the running service."""
