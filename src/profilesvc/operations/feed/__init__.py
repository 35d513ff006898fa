"""Background work that reads the provider: changes, reviews, notifications."""
