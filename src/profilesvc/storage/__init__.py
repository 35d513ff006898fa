"""Tables, migrations and queries: one module of queries for each noun."""
