"""Access to the database: engine, sessions, prepared statements, batches, locks, migrations."""
