"""Reports of the provider: changes of a profile, and categories."""
