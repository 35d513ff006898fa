"""Ports, certificates, and servers that tests connect to: name servers, nginx, receivers of webhooks."""
