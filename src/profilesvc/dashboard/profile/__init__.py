"""The page on a location's profile and its form."""
