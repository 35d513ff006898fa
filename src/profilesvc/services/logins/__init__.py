"""Logins of owners at the provider: consent, connections, locations they bring."""
