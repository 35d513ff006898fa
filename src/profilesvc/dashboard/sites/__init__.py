"""Pages on sites: their list, one site, and what differs from the provider."""
