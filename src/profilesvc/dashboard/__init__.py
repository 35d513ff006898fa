"""The dashboard: pages for a user's keys and sites. It calls the same services as the API."""
