"""What the provider reports: changes of a profile and categories."""
