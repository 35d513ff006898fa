"""How the database is reached: engine, sessions, prepared statements, batches, locks, migrations."""
