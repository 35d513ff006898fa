"""Tables, queries and migrations; rows never leave the services."""
