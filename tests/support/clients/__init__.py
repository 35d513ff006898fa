"""Clients of the service, by this project and by others."""
