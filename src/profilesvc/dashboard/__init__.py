"""The dashboard: a user's keys, sites and what is wrong with them, as pages; it calls what the API calls."""
